/*
 * Recognizes shell lines that are only a program and its arguments. These are executed without a
 * shell, which halves the cost of a short task and means the same, because:
 *
 *  - The line has only letters, digits, _ . / = : , @ % + - and blanks: nothing that /bin/sh would
 *    expand, quote, redirect or assign. The first word has no '=' (an assignment) and does not
 * begin with '%', '+' or '-' (a job, or an option of the shell).
 *  - A first word without a slash is neither a keyword nor a builtin of a usual /bin/sh (dash,
 * bash, ksh, busybox), and is looked up in PATH as the shell does it.
 *  - If the program cannot be executed, the shell gets the line after all: message and exit code
 *    (126, 127) are then the shell's, and a script without #! runs (see spawn.h).
 */
#ifndef LEAT_EXEC_START_WORDS_H
#define LEAT_EXEC_START_WORDS_H

#include <stddef.h>

/* Returns the words, NULL-terminated, in one allocation that the caller frees; or NULL if the line
 * needs a shell. Without memory it returns NULL too, since a shell is never wrong. */
char **words_split(const char *command, size_t size);

#endif
