/*
 * Questions about single tasks of a queue.
 */
#include "board/ask.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/bytes.h"
#include "queue/calls.h"
#include "redis/value.h"
#include "view/output_json.h"
#include "view/reply_fields.h"
#include "view/rows_json.h"
#include "view/shown.h"
#include "view/task_view.h"

#define VALUE_SHOWN 8192 /* bytes of a field */
#define LOOKED_AT 100    /* rows of each list */
#define LOOKED_AT_ENDED 200
#define MOST_FOUND 50

struct ask {
    ask_answered *answered;
    void *context;
    char *text;     /* of a search */
    json_t *found;  /* of a search */
    size_t awaited; /* answers */
    json_int_t looked_at;
    bool failed;
};

static void ask_free(struct ask *ask)
{
    json_decref(ask->found);
    free(ask->text);
    free(ask);
}

static void finish(struct ask *ask, json_t *answer)
{
    ask->answered(ask->context, answer);
    ask_free(ask);
}

static struct ask *ask_new(const char *text, ask_answered *answered, void *context)
{
    struct ask *ask = calloc(1, sizeof *ask);

    if (!ask) {
        return NULL;
    }
    *ask = (struct ask){
        .answered = answered, .context = context, .text = strdup(text), .found = json_array()};
    if (ask->text && ask->found) {
        return ask;
    }
    ask_free(ask);
    return NULL;
}

/* ---- one task */

/* Cuts a member that is longer than the page shows, and says how long it was. */
static void cut_value(json_t *field, const char *name)
{
    json_t *value = json_object_get(field, name);
    size_t size = json_string_length(value);

    if (size > VALUE_SHOWN) {
        /* a failure leaves the whole value */
        (void)json_object_set_new(field, "size", json_integer((json_int_t)size));
        (void)json_object_set_new(
            field, name,
            json_stringn(json_string_value(value),
                         bytes_whole(json_string_value(value), VALUE_SHOWN, VALUE_SHOWN)));
    }
}

static void on_task(void *context, const struct redisReply *reply)
{
    struct ask *ask = context;
    struct task_view task;
    json_t *answer, *field;
    size_t index;

    if (!reply || reply->type != REDIS_REPLY_ARRAY) {
        finish(ask, NULL);
        return;
    }
    if (reply->elements < TASK_VIEW_ELEMENTS) {
        finish(ask, json_object());
        return;
    }
    task = task_view_read(reply);
    answer = task_view_json(&task);
    json_array_foreach(json_object_get(answer, "fields"), index, field)
    {
        cut_value(field, "value");
        cut_value(field, "value_base64");
    }
    finish(ask, answer);
}

int ask_task(struct watched *watched, const char *id, ask_answered *answered, void *context)
{
    const struct queue *queue = watched_queue(watched);
    struct ask *ask = queue ? ask_new("", answered, context) : NULL;
    struct command command = {0};

    if (!ask) {
        return -1;
    }
    queue_show(&command, queue, id, "");
    if (watched_send(watched, &command, on_task, ask) == 0) {
        return 0;
    }
    ask_free(ask);
    return -1;
}

/* ---- searching */

static bool row_has(const struct redisReply *row, const char *text)
{
    static const char *const names[] = {"tid", "command", "id", "lane", "unique", "dead_id"};
    size_t size = strlen(text);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes value = fields_bytes(row, names[i]);
        if (value.size >= size && memmem(value.data, value.size, text, size)) {
            return true;
        }
    }
    return false;
}

/* A task can come twice: by its lane or its id, and in a list. */
static bool is_found(const struct ask *ask, struct bytes tid)
{
    json_t *row;
    size_t index;

    json_array_foreach(ask->found, index, row)
    {
        const char *other = json_string_value(json_object_get(row, "tid"));
        if (other && bytes_equal(tid, other)) {
            return true;
        }
    }
    return false;
}

static void keep_row(struct ask *ask, const struct redisReply *row)
{
    if (json_array_size(ask->found) < MOST_FOUND && !is_found(ask, fields_bytes(row, "tid"))) {
        output_push(&ask->found, shown_row(row));
    }
}

static void count_answer(struct ask *ask)
{
    json_t *answer = NULL;

    if (--ask->awaited > 0) {
        return;
    }
    if (!ask->failed && ask->found) {
        answer = json_pack("{s:O, s:I}", "tasks", ask->found, "looked_at", ask->looked_at);
    }
    finish(ask, answer);
}

/* A list that the user may not read, or that the library does not know, is left out. */
static void on_rows(void *context, const struct redisReply *reply)
{
    struct ask *ask = context;
    const struct redisReply *rows = value_at(reply, 2);

    ask->failed |= !reply;
    for (size_t i = 0; rows && rows->type == REDIS_REPLY_ARRAY && i < rows->elements; i++) {
        if (row_has(rows->element[i], ask->text)) {
            keep_row(ask, rows->element[i]);
        }
        ask->looked_at++;
    }
    count_answer(ask);
}

static void on_named(void *context, const struct redisReply *reply)
{
    struct ask *ask = context;

    ask->failed |= !reply;
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= TASK_VIEW_ELEMENTS) {
        keep_row(ask, reply->element[2]);
    }
    count_answer(ask);
}

static void send_one(struct watched *watched, struct command *command,
                     connection_callback *callback, struct ask *ask)
{
    if (watched_send(watched, command, callback, ask) == 0) {
        ask->awaited++;
    }
}

int ask_search(struct watched *watched, const char *text, ask_answered *answered, void *context)
{
    static const struct {
        const char *what, *cursor;
        int64_t rows;
    } lists[] = {{"running", "0", LOOKED_AT},    {"ready", "g0-0", LOOKED_AT},
                 {"ready", "s0-0", LOOKED_AT},   {"ready", "l0", LOOKED_AT},
                 {"waiting", "0", LOOKED_AT},    {"dead", "+", LOOKED_AT},
                 {"done", "d+", LOOKED_AT_ENDED}};
    const struct queue *queue = watched_queue(watched);
    struct ask *ask = queue ? ask_new(text, answered, context) : NULL;
    struct command command = {0};
    struct buffer lane = BUFFER_INIT;

    if (!ask) {
        return -1;
    }
    queue_show(&command, queue, text, "");
    send_one(watched, &command, on_named, ask);
    if (buffer_printf(&lane, "L%s", text) == 0 && buffer_append(&lane, "", 1) == 0) {
        queue_list(&command, queue, "ready", lane.data, LOOKED_AT, false);
        send_one(watched, &command, on_rows, ask);
    }
    buffer_free(&lane);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        queue_list(&command, queue, lists[i].what, lists[i].cursor, lists[i].rows, false);
        send_one(watched, &command, on_rows, ask);
    }
    if (ask->awaited > 0) {
        return 0;
    }
    ask_free(ask);
    return -1;
}
