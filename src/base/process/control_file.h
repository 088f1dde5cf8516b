/*
 * Small files of the kernel in /proc and /sys: writes a text at once, reads numbers from `key
 * value` lines.
 */
#ifndef LEAT_BASE_PROCESS_CONTROL_FILE_H
#define LEAT_BASE_PROCESS_CONTROL_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes the text to the file in the directory. Returns 0, or -1 with errno. */
int control_file_write(int directory, const char *name, const char *text);

/* Reads the beginning of the file into text, NUL-terminated. Returns its length, or -1 with errno
 * and an empty text. */
ssize_t control_file_read(int fd, char *text, size_t size);

/* The same for a file in the directory. */
ssize_t control_file_read_at(int directory, const char *name, char *text, size_t size);

/* Returns the number on the line that begins with the key and a space, or -1. */
int64_t control_file_value(const char *text, const char *key);

/* Returns the sum of all numbers after `key=`, on all lines (io.stat). */
int64_t control_file_sum(const char *text, const char *key);

#endif
