/*
 * All about one task; leat show and leat dead show.
 */
#ifndef LEAT_CLI_SHOW_SHOW_H
#define LEAT_CLI_SHOW_SHOW_H

#include <stdbool.h>

#include "cli/lib/cli.h"
#include "cli/lib/rows.h"

#define SHOW_NOT_FOUND 1 /* exit status */

struct show_options {
    bool json;
    bool payload;   /* only its bytes */
    bool only_dead; /* look among dead letters alone */
};

/* Finds a task by its id or label, or a dead letter by its entry's id. Returns the reply of
 * leat_show for freeReplyObject, or NULL with *status set and the error printed. */
struct redisReply *show_find(struct cli *cli, const char *id, bool only_dead, int *status);

/* The same, but where there is none nothing is printed: then NULL, and *status is 0. */
struct redisReply *show_look(struct cli *cli, const char *id, int *status);

/* The same among tasks that have not ended, and nothing is printed where there is none: then NULL,
 * and *status is 0. Its row has the token of an entry. */
struct redisReply *show_find_live(struct cli *cli, const char *id, int *status);

/* Finds and prints. Returns an exit status. */
int show_task(struct cli *cli, const char *id, const struct show_options *options);

/* The letter of that task with that entry id, without looking through all. Returns as show_find,
 * but where there is none *status is 0 and nothing is printed. */
struct redisReply *show_find_letter(struct cli *cli, const char *dead_id, const char *tid,
                                    int *status);

/* Prints that letter, for people or, with an array, as its next member. SHOW_NOT_FOUND: it has
 * gone. */
int show_letter(struct cli *cli, const char *dead_id, const char *tid, struct rows_array *array);

#endif
