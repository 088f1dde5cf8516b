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

struct dead_letter {
    char dead_id[48]; /* id of the entry */
    char tid[48];     /* id of the task */
};

/* The letter of a row of leat_list or leat_show. */
struct dead_letter dead_letter(const struct redisReply *row);

/* Locates a task by its id, a prefix of it, or its label, or a dead letter by 'd' and the id of its
 * entry, or else the newest dead letter with that label, unless a later task with the label has
 * ended in another way (not asked with only_dead). Returns the reply of leat_show for
 * freeReplyObject; or NULL with *status 0 if there is none, or after printing the error. */
struct redisReply *show_locate(struct cli *cli, const char *id, bool only_dead, int *status);

/* The same by the whole id of a task, its label while it is in the queue, or 'd' and the id of a
 * dead letter's entry. If there is no such task, prints nothing, sets *status to 0 and returns
 * NULL. */
struct redisReply *show_locate_quietly(struct cli *cli, const char *id, int *status);

/* The same, but locates only a task that has not ended. The row has the token of the entry. */
struct redisReply *show_locate_live(struct cli *cli, const char *id, int *status);

/* Locates the newest dead letter with that label. Returns as show_locate_quietly. */
struct redisReply *show_locate_labelled(struct cli *cli, const char *label, int *status);

/* Locates this dead letter. Returns as show_locate_quietly. */
struct redisReply *show_locate_letter(struct cli *cli, const struct dead_letter *letter,
                                      int *status);

/* Locates dead letters as show_locate does. letters gets one for each id; it has no tid if there is
 * none. Returns 0, or an exit status after printing the error. */
int show_locate_letters(struct cli *cli, char *const *ids, size_t count,
                        struct dead_letter *letters);

/* Locates and prints a task. Returns an exit status. */
int show_task(struct cli *cli, const char *id, const struct show_options *options);

/* Prints a dead letter, as the next member of the array or, if array is NULL, as text. Returns an
 * exit status; SHOW_NOT_FOUND if the dead letter is gone. */
int show_letter(struct cli *cli, const struct dead_letter *letter, struct rows_array *array);

#endif
