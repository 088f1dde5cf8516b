/*
 * The cells of the lists of leat top.
 */
#include "cli/top/cells.h"

#include <stdlib.h>
#include <string.h>

#include "queue/task.h"
#include "view/moment.h"
#include "view/output_json.h"
#include "view/shown.h"

#define ID_DIGITS 8 /* of a short id, after the time */
#define ID_END 5    /* digits of a long one that are shown */

int64_t cells_number(const json_t *row, const char *name)
{
    const json_t *value = json_object_get(row, name);

    if (json_is_string(value)) {
        return strtoll(json_string_value(value), NULL, 10);
    }
    return json_is_integer(value) ? json_integer_value(value) : 0;
}

void cells_add_bytes(struct table *table, const json_t *row, const char *member)
{
    struct buffer decoded = BUFFER_INIT;
    struct bytes value = {"", 0};

    /* a member that is missing is empty */
    (void)output_get_bytes(row, member, &decoded, &value);
    table_add(table, value.data, value.size);
    buffer_free(&decoded);
}

static void add_state(struct table *table, const json_t *row)
{
    static const struct {
        const char *state;
        enum text_style style;
    } styles[] = {{"healthy", TEXT_GREEN},   {"paused", TEXT_YELLOW}, {"retrying", TEXT_YELLOW},
                  {"held", TEXT_YELLOW},     {"unhealthy", TEXT_RED}, {"invalid", TEXT_RED},
                  {"unreachable", TEXT_RED}, {"denied", TEXT_RED},    {"failed", TEXT_RED}};
    const char *state = json_string_value(json_object_get(row, "state"));

    cells_add_bytes(table, row, "state");
    for (size_t i = 0; state && i < sizeof styles / sizeof *styles; i++) {
        if (strcmp(state, styles[i].state) == 0) {
            table_style(table, styles[i].style);
        }
    }
}

/* As leat status shows it. */
static void add_alive(struct table *table, const json_t *row)
{
    bool live = json_is_true(json_object_get(row, "live"));
    const char *state = json_string_value(json_object_get(row, "state"));

    state = !live ? "lost" : state && *state ? state : "-";
    if (live && json_is_true(json_object_get(row, "drained")) && strcmp(state, "running") == 0) {
        state = "drained";
    }
    table_add(table, state, strlen(state));
    if (!live) {
        table_style(table, TEXT_RED);
    } else if (strcmp(state, "running") != 0 && strcmp(state, "-") != 0) {
        table_style(table, TEXT_YELLOW);
    }
}

static void add_host(struct table *table, const json_t *row, const char *member)
{
    const char *worker = json_string_value(json_object_get(row, member));
    const char *colon = worker ? strchr(worker, ':') : NULL;

    table_add(table, worker ? worker : "",
              colon    ? (size_t)(colon - worker)
              : worker ? strlen(worker)
                       : 0);
}

static void add_cause(struct table *table, const json_t *row)
{
    struct buffer decoded[2] = {BUFFER_INIT, BUFFER_INIT}, text = BUFFER_INIT;
    struct bytes cause = {"", 0}, status = {"", 0};

    /* a member that is missing is empty; a failed append marks the buffer */
    (void)output_get_bytes(row, "cause", &decoded[0], &cause);
    (void)output_get_bytes(row, "status", &decoded[1], &status);
    shown_append_cause(cause, status, &text);
    table_add(table, buffer_bytes(&text).data, text.size);
    table->failed |= text.failed;
    buffer_free(&decoded[0]);
    buffer_free(&decoded[1]);
    buffer_free(&text);
}

/* Where there is little room, the cause alone tells that the task died. */
static void add_end(struct table *table, const json_t *row, bool narrow)
{
    const char *outcome = json_string_value(json_object_get(row, "outcome"));
    bool is_dead = outcome && strcmp(outcome, "dead") == 0;

    if (is_dead && narrow && json_object_get(row, "cause")) {
        add_cause(table, row);
    } else {
        cells_add_bytes(table, row, "end");
    }
    if (is_dead) {
        table_style(table, TEXT_RED);
    }
}

/* Appends "  NAME=VALUE" for each field that is a variable of the task. */
static void append_fields(struct buffer *text, const json_t *pairs)
{
    struct buffer decoded[2] = {BUFFER_INIT, BUFFER_INIT};

    for (size_t i = 0; i < json_array_size(pairs); i++) {
        struct task_field field = {{"", 0}, {"", 0}};
        const json_t *pair = json_array_get(pairs, i);
        if (output_get_bytes(pair, "name", &decoded[0], &field.name) == 0 &&
            output_get_bytes(pair, "value", &decoded[1], &field.value) == 0 &&
            task_field_is_variable(&field)) {
            /* a failed append marks the buffer */
            (void)buffer_append_text(text, text->size > 0 ? "  " : "");
            (void)buffer_append(text, field.name.data, field.name.size);
            (void)buffer_append_text(text, "=");
            (void)buffer_append(text, field.value.data, field.value.size);
        }
    }
    buffer_free(&decoded[0]);
    buffer_free(&decoded[1]);
}

static void add_what(struct table *table, const json_t *row)
{
    struct buffer text = BUFFER_INIT, decoded = BUFFER_INIT;
    struct bytes value;

    /* a failed append marks the buffer */
    if (output_get_bytes(row, "command", &decoded, &value) == 0) {
        (void)buffer_append(&text, value.data, value.size);
    }
    append_fields(&text, json_object_get(row, "fields_start"));
    if (output_get_bytes(row, "payload_start", &decoded, &value) == 0 && value.size > 0) {
        (void)buffer_append_text(&text, text.size > 0 ? "  < " : "< ");
        (void)buffer_append(&text, value.data, value.size);
    }
    table_add(table, buffer_bytes(&text).data, text.size);
    table->failed |= text.failed;
    buffer_free(&decoded);
    buffer_free(&text);
}

static void add_time(struct table *table, enum cell_format format, int64_t ms, int64_t now_ms)
{
    char text[MOMENT_SIZE] = "";

    if (format == CELL_DUE) {
        if (ms > 0) {
            moment_relative(ms, now_ms, text, sizeof text);
        }
    } else if (format == CELL_SPAN && ms >= 0) {
        moment_span(ms, text, sizeof text);
    } else if (format == CELL_SINCE && moment_is_past(ms, now_ms)) {
        moment_span(now_ms - ms, text, sizeof text);
    } else {
        table_printf(table, "-");
        return;
    }
    table_printf(table, "%s", text);
}

static void add_number(struct table *table, const json_t *row, const struct cell_field *field)
{
    int64_t number = cells_number(row, field->member);

    if (!json_object_get(row, field->member)) {
        table_printf(table, "-");
        return;
    }
    table_printf(table, "%lld", (long long)number);
    if (strcmp(field->member, "dead") == 0 && number > 0) {
        table_style(table, TEXT_RED);
    }
}

/* Ids of tasks that waited have 20 digits after the time, of which the last ones tell them apart.
 */
static void add_id(struct table *table, const json_t *row, const char *member, bool narrow)
{
    const char *id = json_string_value(json_object_get(row, member));
    const char *dash = id ? strchr(id, '-') : NULL;
    size_t digits = dash ? strlen(dash + 1) : 0;

    if (narrow && digits > ID_DIGITS) {
        table_printf(table, "%.*s-...%s", (int)(dash - id), id, dash + 1 + digits - ID_END);
    } else {
        cells_add_bytes(table, row, member);
    }
}

/* The heartbeat may lack how many tasks the worker can run. */
static void add_busy(struct table *table, const json_t *row)
{
    long long running = (long long)cells_number(row, "running");

    if (json_object_get(row, "capacity")) {
        table_printf(table, "%lld/%lld", running, (long long)cells_number(row, "capacity"));
    } else {
        table_printf(table, "%lld", running);
    }
}

static void add_lane(struct table *table, const json_t *row, const char *member)
{
    const json_t *name = json_object_get(row, member);

    if (json_is_string(name) && json_string_length(name) == 0) {
        table_printf(table, "(none)");
    } else {
        cells_add_bytes(table, row, member);
    }
}

void cells_add(struct table *table, const json_t *row, const struct cell_field *field,
               int64_t now_ms, bool narrow)
{
    switch (field->format) {
    case CELL_ID:
        add_id(table, row, field->member, narrow);
        break;
    case CELL_LANE:
        add_lane(table, row, field->member);
        break;
    case CELL_TEXT:
        cells_add_bytes(table, row, field->member);
        break;
    case CELL_NUMBER:
        add_number(table, row, field);
        break;
    case CELL_RATE:
        table_printf(table, "%.1f/s", json_number_value(json_object_get(row, field->member)));
        break;
    case CELL_SPAN_US:
        add_time(table, CELL_SPAN,
                 json_object_get(row, field->member) ? cells_number(row, field->member) / 1000 : -1,
                 now_ms);
        break;
    case CELL_SPAN:
    case CELL_SINCE:
    case CELL_DUE:
        add_time(table, field->format, cells_number(row, field->member), now_ms);
        break;
    case CELL_HOST:
        add_host(table, row, field->member);
        break;
    case CELL_BUSY:
        add_busy(table, row);
        break;
    case CELL_STATE:
        add_state(table, row);
        break;
    case CELL_ALIVE:
        add_alive(table, row);
        break;
    case CELL_CAUSE:
        add_cause(table, row);
        break;
    case CELL_END:
        add_end(table, row, narrow);
        break;
    case CELL_WHAT:
        add_what(table, row);
        break;
    }
}
