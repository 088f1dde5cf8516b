/*
 * The state of leat top: which queues, which screen, which rows, and what is selected.
 */
#ifndef LEAT_CLI_TOP_STATE_H
#define LEAT_CLI_TOP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"
#include "base/timer.h"
#include "cli/top/action.h"
#include "cli/top/lists.h"
#include "cli/top/task.h"

struct screen;
struct watched;

enum top_place { TOP_QUEUES, TOP_QUEUE, TOP_TASK };

/* The reader of the keys. */
enum top_input { TOP_KEYS, TOP_FILTER, TOP_HELP };

/* A list as the user has arranged it. */
struct top_list {
    json_t *rows;      /* as they are shown; owned */
    size_t read;       /* rows before the filter */
    int64_t total;     /* of the queue */
    struct buffer key; /* of the selected row; empty: whichever is at this place */
    size_t selected;   /* its place */
    size_t first;      /* the first row on the screen */
    int column;        /* sorted by it */
    bool reverse;
    struct buffer filter;
};

struct top {
    struct ev_loop *loop;
    const struct config_source *source;
    bool named; /* the source names the queue, and there is only this one */
    struct watched **queues;
    size_t queue_count;

    struct screen *screen;
    size_t rows, columns;
    bool color;
    struct timer tick; /* asks for news */
    struct timer draw; /* runs if something has changed */

    enum top_place place;
    enum top_input input;
    size_t queue; /* the one that is shown; an index of queues */
    enum list_kind tab;
    json_t *page;   /* of that queue; NULL: none */
    int64_t now_ms; /* at its Redis */
    struct top_list lists[LIST_KINDS];
    struct task_screen task;
    char letter[64]; /* the task is this dead letter; "": none */
    size_t first;    /* line of the task's screen */
    bool follows;    /* its end stays in sight */
    struct action action;
};

/* Opens the first screen. A queue that is the only one has no list of queues above it. */
void top_start(struct top *top);
void top_free(struct top *top);

/* Has the screen drawn soon. */
void top_changed(void *context);

/* Asks Redis for what the screen shows, at most once a second. */
void top_refresh(struct top *top);

/* The list that is shown, for which keys are meant; NULL: none. */
struct top_list *top_list(struct top *top);
enum list_kind top_list_kind(const struct top *top);

/* The selected row; NULL: none. */
const json_t *top_row(struct top *top);

/* Reads the rows of the list again from what is known of the queues. */
void top_read_rows(struct top *top);

/* Moves the selection by that many rows, within the list. */
void top_move(struct top *top, int64_t by);

/* Open what is selected, show another list of the queue, and return. top_back returns false if
 * there is no screen to return to. */
void top_open(struct top *top);
void top_show_tab(struct top *top, enum list_kind tab);
bool top_back(struct top *top);

/* The queue for which keys are meant: the one that is shown or, among all, the selected one.
 * Returns NULL if there is none. *source becomes that of commands for it. */
const struct watched *top_queue(struct top *top, struct config_source *source);

#endif
