/*
 * leat help: manuals of commands, and what the table of configuration keys knows.
 */
#ifndef LEAT_CLI_HELP_HELP_H
#define LEAT_CLI_HELP_HELP_H

#include "cli/lib/cli.h"

/* Opens the manual leat-NAME(1) on a terminal; this replaces the process. Without a terminal, a man
 * program or the page, prints the command's --help text and returns EX_OK. */
int help_command(const struct subcommand *subcommand);

/* Prints the usage of leat help. Returns EX_OK. */
int help_usage(void);

/* Explains configuration keys. words: [KEY], [SECTION.KEY] or SECTION KEY, and count of them; a
 * section may be in brackets. Without words, or with a section alone, lists keys. Returns EX_OK, or
 * EX_USAGE or EX_OSERR after printing the error. */
int help_ini(int count, char *const *words);

#endif
