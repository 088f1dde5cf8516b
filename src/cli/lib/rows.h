/*
 * Rows of leat_list: walking through them page by page, and what the commands show of one.
 */
#ifndef LEAT_CLI_LIB_ROWS_H
#define LEAT_CLI_LIB_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "cli/lib/cli.h"
#include "cli/lib/table.h"

/* Called for each row; true goes on. */
typedef bool rows_visit(void *context, const struct redisReply *row);

/* Visits the rows of a list ("ready", "running", "waiting", "dead"); whole: those of dead letters
 * have the whole command, in whole_command where it is longer. Returns 0 or an exit status. */
int rows_walk(struct cli *cli, const char *what, bool whole, rows_visit *visit, void *context);

/* The command, whole where the row has it. */
struct bytes rows_command(const struct redisReply *row);

/* A row as JSON; a command that the row has not whole is marked. NULL without memory. */
json_t *rows_json(const struct redisReply *row);

/* Cells: what the task runs, and how long ago an instant was. */
void rows_add_command(struct table *table, const struct redisReply *row);
void rows_add_ago(struct table *table, int64_t unix_ms, int64_t now_ms);

/* "exit 3", "timeout", … as a dead letter has it. */
void rows_add_cause(struct table *table, const struct redisReply *row);

/* JSON arrays of rows, written as they come: begin, each, end. */
struct rows_array {
    bool begun;
};
int rows_array_add(struct rows_array *array, json_t *value);
void rows_array_end(const struct rows_array *array);

/* Prints the table, or "no WHAT" where it is empty. limit: 0, or how many rows it was cut at, each:
 * of each state. Returns 0 or an exit status. */
int rows_print(const struct table *table, const char *what, int64_t limit, bool each);

#endif
