/*
 * Everything about one task, for leat show and leat dead show.
 */
#ifndef LEAT_CLI_SHOW_SHOW_H
#define LEAT_CLI_SHOW_SHOW_H

#include <stdbool.h>

#include "cli/lib/cli.h"
#include "cli/lib/rows.h"

#define SHOW_NOT_FOUND 1 /* exit status */

struct show_options {
    bool json;
    bool payload;   /* print only the bytes of the payload */
    bool only_dead; /* search only dead letters */
};

/* Locates a task by its id or label, or a dead letter by the id of its entry. Returns the reply of
 * leat_show for freeReplyObject, or NULL after printing the error and setting *status. */
struct redisReply *show_locate(struct cli *cli, const char *id, bool only_dead, int *status);

/* The same, but if there is no such task, prints nothing, sets *status to 0 and returns NULL. */
struct redisReply *show_locate_quietly(struct cli *cli, const char *id, int *status);

/* The same, but searches only tasks that have not ended. The row has the token of the entry. */
struct redisReply *show_locate_live(struct cli *cli, const char *id, int *status);

/* Locates and prints a task. Returns an exit status. */
int show_task(struct cli *cli, const char *id, const struct show_options *options);

/* Locates the dead letter of that task by the id of its entry, without a search. Returns as
 * show_locate_quietly. */
struct redisReply *show_locate_letter(struct cli *cli, const char *dead_id, const char *tid,
                                      int *status);

/* Prints that dead letter, as the next member of the array or, if array is NULL, as text. Returns
 * an exit status; SHOW_NOT_FOUND if the dead letter is gone. */
int show_letter(struct cli *cli, const char *dead_id, const char *tid, struct rows_array *array);

#endif
