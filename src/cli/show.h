/*
 * All about one task; leat show and leat dead show.
 */
#ifndef LEAT_CLI_SHOW_H
#define LEAT_CLI_SHOW_H

#include <stdbool.h>

#include "cli/cli.h"

#define SHOW_NOT_FOUND 1 /* exit status */

struct show_options {
    bool json;
    bool payload;   /* only its bytes */
    bool only_dead; /* look among dead letters alone */
};

/* Finds a task by its id or label, or a dead letter by its entry's id. Returns the reply of
 * leat_show for freeReplyObject, or NULL with *status set and the error printed. */
struct redisReply *show_find(struct cli *cli, const char *id, bool only_dead, int *status);

/* Finds and prints. Returns an exit status. */
int show_task(struct cli *cli, const char *id, const struct show_options *options);

#endif
