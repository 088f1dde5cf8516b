/*
 * Small files of the kernel: a text written in one go, numbers read from `key value` lines.
 */
#ifndef LEAT_BASE_PROCESS_CONTROL_FILE_H
#define LEAT_BASE_PROCESS_CONTROL_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes the text to that file of the directory. Returns 0, or -1 with errno. */
int control_write(int directory, const char *name, const char *text);

/* The beginning of what the descriptor gives, from its start, NUL-terminated. Returns its length,
 * or -1 with errno and an empty text. */
ssize_t control_read(int fd, char *text, size_t size);

/* The same by name. */
ssize_t control_read_file(int directory, const char *name, char *text, size_t size);

/* The number on the line that begins with the key and a space, or -1. */
int64_t control_value(const char *text, const char *key);

/* The sum of all that follows `key=`, on all lines (io.stat). */
int64_t control_sum(const char *text, const char *key);

#endif
