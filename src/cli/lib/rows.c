/*
 * Rows of leat_list, fetched page by page and shown.
 */
#include "cli/lib/rows.h"

#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/output.h"
#include "queue/calls.h"
#include "queue/shared/limits.h"
#include "queue/task.h"
#include "view/moment.h"
#include "view/reply_fields.h"
#include "view/shown.h"

#define PAGE 200         /* rows per call: Redis reads whole entries, with their payloads */
#define RUNNING_PAGE 500 /* the same for running tasks: each call looks at all of their records */
#define FIELD_PREVIEW 64 /* bytes of a field's value in a row, as in view.lua */
#define CURSOR_SIZE 256  /* more than a letter and an entry id, or the name of a lane */

static const char *first_cursor(const char *what)
{
    if (strcmp(what, "ready") == 0) {
        return "g0-0";
    }
    if (strcmp(what, "done") == 0) {
        return "d+";
    }
    return strcmp(what, "dead") == 0 ? "0-0" : "0";
}

/* Visits one page. The cursor becomes that of the next page, or empty after the last one. *more
 * becomes false if the visitor stops. */
static int walk_page(struct cli *cli, const char *what, bool whole, char *cursor, rows_visit *visit,
                     void *context, bool *more)
{
    struct command command = {0};
    struct redisReply *reply;
    bool running = strcmp(what, "running") == 0;
    int status;

    queue_list(&command, &cli->queue, what, cursor, running ? RUNNING_PAGE : PAGE, whole);
    reply = cli_call(cli, &command, "cannot list tasks", 3, &status);
    if (!reply) {
        return status;
    }

    for (size_t i = 0; i < reply->element[2]->elements && *more; i++) {
        *more = visit(context, reply->element[2]->element[i]);
    }
    bytes_copy(fields_value(reply->element[1]), cursor, CURSOR_SIZE);
    freeReplyObject(reply);
    return EX_OK;
}

/* Visits the pages from this cursor on, until one that begins with `end`. *more becomes false if
 * the visitor stops. */
static int walk_from(struct cli *cli, const char *what, bool whole, char *cursor, char end,
                     rows_visit *visit, void *context, bool *more)
{
    int status = EX_OK;

    while (*more && *cursor != end && *cursor && status == EX_OK) {
        status = walk_page(cli, what, whole, cursor, visit, context, more);
    }
    return status;
}

int rows_walk(struct cli *cli, const char *what, bool whole, rows_visit *visit, void *context)
{
    char cursor[CURSOR_SIZE];
    bool more = true;

    (void)snprintf(cursor, sizeof cursor, "%s", first_cursor(what));
    return walk_from(cli, what, whole, cursor, '\0', visit, context, &more);
}

int rows_walk_ended(struct cli *cli, int64_t since_ms, rows_visit *visit, void *context)
{
    char cursor[CURSOR_SIZE];
    bool more = true;

    (void)snprintf(cursor, sizeof cursor, "a%lld", (long long)since_ms);
    return walk_from(cli, "done", false, cursor, '\0', visit, context, &more);
}

/* Passes rows on as long as they are of the lane. */
struct lane_walk {
    const char *lane;
    rows_visit *visit;
    void *context;
    bool more; /* the visitor has not stopped */
};

static bool visit_of_lane(void *context, const struct redisReply *row)
{
    struct lane_walk *walk = context;

    if (!bytes_equal(fields_bytes(row, "lane"), walk->lane)) {
        return false;
    }
    walk->more = walk->visit(walk->context, row);
    return walk->more;
}

int rows_walk_lane(struct cli *cli, const char *lane, bool whole, rows_visit *visit, void *context)
{
    struct lane_walk walk = {lane, visit, context, true};
    char cursor[CURSOR_SIZE];
    bool more = true;
    int status;

    /* a longer name is that of no lane; what is found by its beginning is not passed on */
    (void)snprintf(cursor, sizeof cursor, "L%s", lane);
    status = walk_from(cli, "ready", whole, cursor, '\0', visit_of_lane, &walk, &more);
    (void)snprintf(cursor, sizeof cursor, "%s", first_cursor("ready"));
    return status != EX_OK
               ? status
               : walk_from(cli, "ready", whole, cursor, 'l', visit, context, &walk.more);
}

/* Appends "  NAME=VALUE". Fields that are options of the task are left out. */
static void add_field(struct buffer *text, struct bytes name, struct bytes value)
{
    struct task_field field = {name, value};

    /* a failed append marks the buffer */
    if (task_field_is_variable(&field)) {
        (void)buffer_append_text(text, text->size > 0 ? "  " : "");
        (void)buffer_append(text, name.data, name.size);
        (void)buffer_append_text(text, "=");
        (void)buffer_append(text, value.data, bytes_whole(value.data, value.size, FIELD_PREVIEW));
    }
}

void rows_add_command(struct table *table, const struct redisReply *row)
{
    struct bytes command = fields_bytes(row, "command");
    struct bytes payload = fields_bytes(row, "payload_start");
    const struct redisReply *fields = fields_find(row, "fields_start");
    struct buffer text = BUFFER_INIT;

    /* a failed append marks the buffer */
    (void)buffer_append(&text, command.data,
                        bytes_whole(command.data, command.size, QUEUE_PREVIEW));
    for (size_t i = 0; i < fields_count(fields); i++) {
        add_field(&text, fields_name_at(fields, i), fields_value(fields_value_at(fields, i)));
    }
    if (payload.size > 0) {
        (void)buffer_append_text(&text, text.size > 0 ? "  < " : "< ");
        (void)buffer_append(&text, payload.data,
                            bytes_whole(payload.data, payload.size, QUEUE_PREVIEW));
    }
    if (text.size == 0) {
        (void)buffer_append_text(&text, "(no command, no payload)");
    }
    table_add(table, text.data, text.size);
    table->failed |= text.failed;
    buffer_free(&text);
}

void rows_add_ago(struct table *table, int64_t unix_ms, int64_t now_ms)
{
    char text[MOMENT_SIZE] = "-";

    if (moment_is_past(unix_ms, now_ms)) {
        moment_span(now_ms - unix_ms, text, sizeof text);
    }
    table_printf(table, "%s", text);
}

void rows_add_cause(struct table *table, const struct redisReply *row)
{
    struct buffer text = BUFFER_INIT;

    /* a failed append marks the buffer */
    shown_append_cause(fields_bytes(row, "cause"), fields_bytes(row, "status"), &text);
    table_add(table, text.data, text.size);
    table->failed |= text.failed;
    buffer_free(&text);
}

int rows_array_add(struct rows_array *array, json_t *value)
{
    struct buffer text = BUFFER_INIT;
    int status;

    /* a failed append marks the buffer */
    (void)buffer_append_text(&text, array->begun ? ",\n " : "[");
    status = output_json_text(value, JSON_COMPACT, &text);
    if (status == EX_OK) {
        status = output_write(&text);
        array->begun = true;
    }
    buffer_free(&text);
    return status;
}

void rows_array_end(const struct rows_array *array)
{
    /* cli_flush reports failures */
    (void)puts(array->begun ? "]" : "[]");
}

static int print_limit(int64_t limit, const char *of)
{
    if (limit == 1) {
        return output_printf("... only the first%s is shown; --limit 0 shows all\n", of);
    }
    return output_printf("... only the first %lld%s are shown; --limit 0 shows all\n",
                         (long long)limit, of);
}

int rows_print(const struct table *table, const char *what, int64_t limit, bool each)
{
    struct output output = output_look();
    struct buffer page = BUFFER_INIT;
    int status = EX_OK;

    if (table_rows(table) == 0) {
        /* cli_flush reports failures */
        (void)printf("no %s\n", what);
        return EX_OK;
    }
    if (table_render(table, &page, 0, output.width, output.color) == 0) {
        status = output_write(&page);
    } else {
        status = cli_no_memory();
    }
    if (limit > 0 && status == EX_OK) {
        status = print_limit(limit, each ? " of each state" : "");
    }
    buffer_free(&page);
    return status;
}
