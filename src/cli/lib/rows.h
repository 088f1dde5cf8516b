/*
 * Rows of leat_list: fetching them page by page, and showing them.
 */
#ifndef LEAT_CLI_LIB_ROWS_H
#define LEAT_CLI_LIB_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "cli/lib/cli.h"
#include "cli/lib/table.h"
#include "view/rows_json.h"

/* Called for each row. Returns true to continue. */
typedef bool rows_visit(void *context, const struct redisReply *row);

/* Visits the rows of a list: "ready", "running", "waiting", "dead" or "done", the newest first.
 * With whole, rows have a whole_command if the command is longer than a preview. Returns 0, or an
 * exit status after printing the error. */
int rows_walk(struct cli *cli, const char *what, bool whole, rows_visit *visit, void *context);

/* The same for the ready tasks that wait in a lane, and then for all that wait in none: the lane's
 * next one may be among these. */
int rows_walk_lane(struct cli *cli, const char *lane, bool whole, rows_visit *visit, void *context);

/* Visits ended tasks, the oldest first, from those that ended at that time on. */
int rows_walk_ended(struct cli *cli, int64_t since_ms, rows_visit *visit, void *context);

/* Add a cell: the command of the task with its fields and the beginning of its payload, or how long
 * ago a time was. */
void rows_add_command(struct table *table, const struct redisReply *row);
void rows_add_ago(struct table *table, int64_t unix_ms, int64_t now_ms);

/* Adds the cause of a dead letter: "exit 3", "timeout", … */
void rows_add_cause(struct table *table, const struct redisReply *row);

/* A JSON array that is written row by row. */
struct rows_array {
    bool begun;
};
int rows_array_add(struct rows_array *array, json_t *value);
void rows_array_end(const struct rows_array *array);

/* Prints the table, or "no WHAT" if it is empty. limit: 0, or the number of rows that were listed
 * before the rest was left out; each: this number is per state. Returns 0, or an exit status after
 * printing the error. */
int rows_print(const struct table *table, const char *what, int64_t limit, bool each);

#endif
