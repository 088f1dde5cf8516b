/*
 * Tells shell lines that need a shell from those that are only a program and its arguments. The
 * latter can be executed directly, which saves loading a shell, half the cost of a short task,
 * and means the same:
 *
 *  - only letters, digits, _ . / = : , @ % + - and blanks: nothing that /bin/sh would expand,
 * quote, redirect or assign. The first word has no '=' (an assignment) and does not begin with '%',
 * '+' or '-' (a job, an option of the shell);
 *  - a first word without a slash is no keyword and no builtin of a usual /bin/sh (dash, bash, ksh,
 *    busybox), and is looked up in PATH as the shell does it;
 *  - what cannot be executed is given to the shell after all, so that message and exit code (126,
 *    127) are the shell's, and so that a script without #! runs (see spawn.h).
 */
#ifndef LEAT_EXEC_START_WORDS_H
#define LEAT_EXEC_START_WORDS_H

#include <stddef.h>

/* The words, NULL-terminated, in one allocation that the caller frees; NULL where the line needs a
 * shell (or there is no memory: the shell is always right). */
char **words_split(const char *command, size_t size);

#endif
