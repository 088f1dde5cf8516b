/*
 * Ended tasks in the history of the queue, by their ids, prefixes of these, or labels.
 */
#ifndef LEAT_CLI_SHOW_ENDED_H
#define LEAT_CLI_SHOW_ENDED_H

#include <stdbool.h>

#include "cli/lib/cli.h"
#include "cli/lib/rows.h"

/* Visits the last end of the task with that whole id; or of the newest one with that label; or of
 * that with an id that begins so, if it is the only one among the 1,000 tasks that ended last.
 * visit's result is ignored. Calls Redis for each 200 tasks that ended since the task was enqueued,
 * until it is found; for a label, and if the id is not found so, for all, the newest first. Sets
 * *found. Returns 0, or an exit status after printing the error. */
int ended_find(struct cli *cli, const char *id, rows_visit *visit, void *context, bool *found);

/* Sets whether the row of a task that was located by this name is that of a dead letter with this
 * label, and a later task with the label has ended in another way. Then the name means the later
 * one, which ended_find finds. Returns as ended_find. */
int ended_is_later(struct cli *cli, const char *name, const struct redisReply *row, bool *is_later);

#endif
