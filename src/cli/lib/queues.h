/*
 * Which of the queues that have a file in /etc/leat a command is for.
 */
#ifndef LEAT_CLI_LIB_QUEUES_H
#define LEAT_CLI_LIB_QUEUES_H

#include <stdbool.h>

#include "config/file/queues.h"

struct cli;

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
