/*
 * Keeps the state of leat top.
 */
#include "cli/top/state.h"

#include <stdlib.h>
#include <string.h>

#include "cli/top/header.h"
#include "view/output_json.h"
#include "view/watch/watched.h"

#define DRAW_MS 30

void top_changed(void *context)
{
    struct top *top = context;

    if (!timer_runs(&top->draw)) {
        timer_start_ms(&top->draw, DRAW_MS);
    }
}

void top_refresh(struct top *top)
{
    if (top->place == TOP_TASK) {
        task_refresh(&top->task);
        return;
    }
    for (size_t i = 0; i < top->queue_count; i++) {
        if (top->place == TOP_QUEUES || i == top->queue) {
            watched_refresh(top->queues[i], top->place == TOP_QUEUES ? WATCHED_STATUS
                                            : top->tab == LIST_ENDED ? WATCHED_ENDED
                                                                     : WATCHED_LISTS);
        }
    }
}

/* ---- lists */

enum list_kind top_list_kind(const struct top *top)
{
    return top->place == TOP_QUEUES ? LIST_QUEUES : top->tab;
}

struct top_list *top_list(struct top *top)
{
    return top->place == TOP_TASK ? NULL : &top->lists[top_list_kind(top)];
}

const json_t *top_row(struct top *top)
{
    const struct top_list *list = top_list(top);

    return list ? json_array_get(list->rows, list->selected) : NULL;
}

static void forget_list(struct top_list *list)
{
    json_decref(list->rows);
    buffer_free(&list->key);
    buffer_free(&list->filter);
    *list = (struct top_list){.column = LIST_UNSORTED};
}

static json_t *read_queues(struct top *top)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < top->queue_count; i++) {
        output_push(&rows, list_queue_row(watched_summary(top->queues[i])));
    }
    return rows;
}

static void read_page(struct top *top)
{
    json_decref(top->page);
    top->page = watched_page(top->queues[top->queue]);
    top->now_ms = header_now_ms(top->page);
}

/* Selects the row with the key again, wherever it is now. If it has gone, selects the one that took
 * its place. */
static void find_selected(struct top_list *list, enum list_kind kind)
{
    size_t count = json_array_size(list->rows);
    struct buffer key = BUFFER_INIT;

    for (size_t i = 0; i < count && list->key.size > 0; i++) {
        buffer_clear(&key);
        list_key(kind, json_array_get(list->rows, i), &key);
        if (key.size == list->key.size && memcmp(key.data, list->key.data, key.size) == 0) {
            list->selected = i;
            break;
        }
    }
    buffer_free(&key);
    if (list->selected >= count) {
        list->selected = count > 0 ? count - 1 : 0;
    }
}

void top_read_rows(struct top *top)
{
    struct top_list *list = top_list(top);
    enum list_kind kind = top_list_kind(top);

    if (!list) {
        return;
    }
    json_decref(list->rows);
    if (top->place == TOP_QUEUES) {
        list->rows = read_queues(top);
        list->total = (int64_t)top->queue_count;
    } else {
        read_page(top);
        list->rows = list_rows(kind, top->page);
        list->total = list_total(kind, top->page);
    }
    list->read = json_array_size(list->rows);
    list_filter(kind, &list->rows, buffer_bytes(&list->filter));
    list_sort(kind, &list->rows, list->column, list->reverse);
    find_selected(list, kind);
}

void top_move(struct top *top, int64_t by)
{
    struct top_list *list = top_list(top);
    int64_t count = list ? (int64_t)json_array_size(list->rows) : 0;
    int64_t place = list ? (int64_t)list->selected + by : 0;

    if (count == 0) {
        return;
    }
    list->selected = (size_t)(place < 0 ? 0 : place >= count ? count - 1 : place);
    buffer_clear(&list->key);
    list_key(top_list_kind(top), top_row(top), &list->key);
}

/* ---- screens */

static void show_queue(struct top *top, size_t queue)
{
    if (queue != top->queue) {
        for (size_t i = 0; i < LIST_TABS; i++) {
            forget_list(&top->lists[i]);
        }
        top->tab = LIST_RUNNING;
    }
    top->queue = queue;
    top->place = TOP_QUEUE;
    top_refresh(top);
}

/* The index of a queue, or queue_count. */
static size_t find_queue(const struct top *top, const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "queue"));
    size_t i = 0;

    while (i < top->queue_count && (!name || strcmp(watched_name(top->queues[i]), name) != 0)) {
        i++;
    }
    return i;
}

static void show_task(struct top *top, const json_t *row)
{
    const char *id = json_string_value(json_object_get(row, "tid"));
    const char *letter = json_string_value(json_object_get(row, "dead_id"));
    bool has_ended = top->tab == LIST_ENDED;
    struct config_source source;

    if (!id || !top_queue(top, &source) || task_open(&top->task, &source, id, has_ended) != 0) {
        return;
    }
    bytes_copy(bytes_of(letter), top->letter, sizeof top->letter);
    top->first = 0;
    top->follows = false;
    top->place = TOP_TASK;
}

void top_open(struct top *top)
{
    const json_t *row = top_row(top);

    if (row && top->place == TOP_QUEUES) {
        size_t queue = find_queue(top, row);
        if (queue < top->queue_count) {
            show_queue(top, queue);
        }
    } else if (row) {
        show_task(top, row);
    }
}

void top_show_tab(struct top *top, enum list_kind tab)
{
    top->tab = tab;
    top_refresh(top);
    top_read_rows(top);
}

bool top_back(struct top *top)
{
    if (top->place == TOP_TASK) {
        task_close(&top->task);
        top->place = TOP_QUEUE;
    } else if (top->place == TOP_QUEUE && !top->named) {
        top->place = TOP_QUEUES;
    } else {
        return false;
    }
    top_refresh(top);
    return true;
}

const struct watched *top_queue(struct top *top, struct config_source *source)
{
    size_t queue = top->place == TOP_QUEUES ? find_queue(top, top_row(top)) : top->queue;

    if (queue == top->queue_count) {
        return NULL;
    }
    *source = *top->source;
    if (!top->named) {
        source->queue = watched_name(top->queues[queue]);
    }
    return top->queues[queue];
}

void top_start(struct top *top)
{
    for (size_t i = 0; i < LIST_KINDS; i++) {
        top->lists[i].column = LIST_UNSORTED;
    }
    top->place = top->named ? TOP_QUEUE : TOP_QUEUES;
    top_changed(top);
}

void top_free(struct top *top)
{
    timer_stop(&top->tick);
    timer_stop(&top->draw);
    task_close(&top->task);
    action_free(&top->action);
    for (size_t i = 0; i < LIST_KINDS; i++) {
        forget_list(&top->lists[i]);
    }
    for (size_t i = 0; i < top->queue_count; i++) {
        watched_free(top->queues[i]);
    }
    json_decref(top->page);
    free(top->queues);
}
