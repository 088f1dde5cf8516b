/*
 * The lists of leat top: queues, and in a queue its tasks, workers, lanes, dead letters and ended
 * tasks. A row is a JSON object; a row of a task is one of view/shown.h.
 */
#ifndef LEAT_CLI_TOP_LISTS_H
#define LEAT_CLI_TOP_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"

enum list_kind {
    LIST_RUNNING, /* the lists of a queue, in the order of their tabs */
    LIST_WAITING,
    LIST_WORKERS,
    LIST_LANES,
    LIST_DEAD,
    LIST_ENDED,
    LIST_QUEUES,
    LIST_KINDS,
};

#define LIST_TABS LIST_QUEUES /* how many lists a queue has */
#define LIST_UNCOUNTED (-1)
#define LIST_UNSORTED (-1) /* in the order in which leat reads them */

/* The row of a queue, from watched_summary, whose reference it takes. */
json_t *list_queue_row(json_t *summary);

/* The rows of a list of a queue, from watched_page. Each returns a new reference, or NULL without
 * memory. */
json_t *list_rows(enum list_kind kind, const json_t *page);

/* How many rows the list would have if the page had all of them, or LIST_UNCOUNTED. */
int64_t list_total(enum list_kind kind, const json_t *page);

/* Drops rows in which no column has the text; upper and lower case of ASCII are the same. */
void list_filter(enum list_kind kind, json_t **rows, struct bytes text);

/* Sorts by a column: large numbers, long times and early letters first; reverse: last. Frees *rows
 * and sets it to NULL without memory. */
void list_sort(enum list_kind kind, json_t **rows, int column, bool reverse);

/* The next column to sort by, or LIST_UNSORTED after the last one; and the title of a column. */
int list_next_column(enum list_kind kind, int column);
const char *list_title(enum list_kind kind, int column);

/* Appends what tells a row from all others. */
void list_key(enum list_kind kind, const json_t *row, struct buffer *key);

/* Appends a line of titles and one for each row. Returns 0, or -1 without memory. */
int list_render(enum list_kind kind, const json_t *rows, int64_t now_ms, size_t width, bool color,
                struct buffer *out);

#endif
