/*
 * Runs another program and waits for it.
 */
#ifndef LEAT_BASE_PROCESS_PROGRAM_H
#define LEAT_BASE_PROCESS_PROGRAM_H

#include <stddef.h>

/* Runs argv, found along PATH, with /dev/null as its input. If text is not NULL, what it
 * prints and its errors go there, NUL-terminated and cut to size; otherwise it has the output and
 * the errors of this process. Returns its exit status, 128 and more for a signal; or -1 with errno.
 */
int program_run(char *const argv[], char *text, size_t size);

/* The same for an output that is parsed: errors are dropped, since programs may also write there
 * what is none, such as systemctl with SYSTEMD_LOG_LEVEL=debug. text must not be NULL. */
int program_read(char *const argv[], char *text, size_t size);

#endif
