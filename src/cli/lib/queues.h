/*
 * The queues that have a file in /etc/leat, and which of them a command is for.
 */
#ifndef LEAT_CLI_LIB_QUEUES_H
#define LEAT_CLI_LIB_QUEUES_H

#include <stdbool.h>
#include <stddef.h>

struct cli;

/* Lists their names, sorted, for queues_free. *error is errno if the folder cannot be read, or else
 * 0. Returns the number of names. */
size_t queues_list(char ***names, int *error);
void queues_free(char **names, size_t count);

/* Prints that there are no queues; error comes from queues_list. Returns EX_CONFIG. */
int queues_none(int error);

/* True if neither the options nor the environment name a queue or a Redis. */
bool queues_is_open(const struct cli *cli);

/* True if a file is read: without one, the configuration has only defaults. */
bool queues_reads_file(const struct cli *cli);

/* Finds the file to load: *path is for free(), or NULL if no file is needed. Returns 0, or an exit
 * status after printing the error. */
int queues_find(const struct cli *cli, char **path);

#endif
