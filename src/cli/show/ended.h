/*
 * Ended tasks in the history of the queue, by their ids or labels.
 */
#ifndef LEAT_CLI_SHOW_ENDED_H
#define LEAT_CLI_SHOW_ENDED_H

#include <stdbool.h>

#include "cli/lib/cli.h"
#include "cli/lib/rows.h"
#include "cli/show/expand_id.h"

/* Visits the last end of the task with that whole id, or of the newest one with that label; visit's
 * result is ignored. Calls Redis for each 200 tasks that ended since the task was enqueued, until
 * it is found, or for a label for the newest ones. Sets *found. Returns 0, or an exit status after
 * printing the error. */
int ended_find(struct cli *cli, const char *id, rows_visit *visit, void *context, bool *found);

/* Expands the id if it is the prefix of exactly one among the ENDED_EXPANDED tasks that ended last;
 * see expand_id. */
#define ENDED_EXPANDED 1000
int ended_expand(struct cli *cli, const char *typed, struct expanded_id *expanded);

#endif
