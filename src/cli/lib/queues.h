/*
 * The queues that have a file in /etc/leat, and which of them a command is for.
 */
#ifndef LEAT_CLI_LIB_QUEUES_H
#define LEAT_CLI_LIB_QUEUES_H

#include <stdbool.h>
#include <stddef.h>

struct cli;

/* Their names, sorted, for queues_free. *error is 0, or errno if the folder cannot be read: then
 * there are none. Returns how many. */
size_t queues_list(char ***names, int *error);
void queues_free(char **names, size_t count);

/* Prints that there are none; error is that of queues_list. Returns EX_CONFIG. */
int queues_none(int error);

/* True if neither options nor environment say which queue, nor which Redis. */
bool queues_is_open(const struct cli *cli);

/* The file to load, for free(), or NULL: none, the options say it all. Returns 0 or an exit status;
 * the error has been printed. */
int queues_find(const struct cli *cli, char **path);

#endif
