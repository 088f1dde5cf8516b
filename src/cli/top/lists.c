/*
 * The lists of leat top: their columns and rows.
 */
#include "cli/top/lists.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/lib/table.h"
#include "cli/top/cells.h"
#include "view/output_json.h"

#define NARROW 100 /* columns; below that, long ids are cut */

static const struct cell_field queues[] = {
    {{.title = "QUEUE", .flexible = true}, "queue", CELL_TEXT},
    {{.title = "STATE"}, "state", CELL_STATE},
    {{.title = "READY", .right = true}, "ready", CELL_NUMBER},
    {{.title = "RUNNING", .right = true, .leave_out = 5}, "running", CELL_NUMBER},
    {{.title = "DELAYED", .right = true, .leave_out = 2}, "delayed", CELL_NUMBER},
    {{.title = "DEAD", .right = true}, "dead", CELL_NUMBER},
    {{.title = "WORKERS", .right = true, .leave_out = 4}, "workers", CELL_NUMBER},
    {{.title = "OLDEST", .right = true, .leave_out = 6}, "oldest_ms", CELL_SPAN},
    {{.title = "RATE", .right = true, .leave_out = 3}, "rate", CELL_RATE},
    {{.title = "PROBLEM", .flexible = true, .optional = true, .leave_out = 1},
     "problem",
     CELL_TEXT},
};

/* Columns of all lists of tasks. */
#define TASK_ID {.title = "ID"}, "tid", CELL_ID
#define TASK_LABEL                                                                                 \
    {.title = "LABEL", .flexible = true, .optional = true, .leave_out = 4}, "id", CELL_TEXT
#define TASK_TRIES {.title = "TRIES", .right = true, .leave_out = 1}, "attempts", CELL_NUMBER
#define TASK_LANE                                                                                  \
    {.title = "LANE", .flexible = true, .optional = true, .leave_out = 2}, "lane", CELL_TEXT
#define TASK_WHAT {.title = "COMMAND", .flexible = true}, "command", CELL_WHAT

static const struct cell_field running[] = {
    {TASK_ID},
    {TASK_LABEL},
    {{.title = "STATE", .leave_out = 1}, "state", CELL_STATE},
    {{.title = "FOR", .right = true}, "begun_ms", CELL_SINCE},
    {TASK_TRIES},
    {{.title = "HOST", .flexible = true, .leave_out = 3}, "worker", CELL_HOST},
    {TASK_LANE},
    {TASK_WHAT},
};

static const struct cell_field waiting[] = {
    {TASK_ID},
    {TASK_LABEL},
    {{.title = "STATE"}, "state", CELL_STATE},
    {{.title = "AGE", .right = true, .leave_out = 3}, "enqueued_ms", CELL_SINCE},
    {TASK_TRIES},
    {{.title = "DUE", .right = true, .optional = true, .leave_out = 4}, "due_ms", CELL_DUE},
    {TASK_LANE},
    {TASK_WHAT},
};

static const struct cell_field workers[] = {
    {{.title = "HOST", .flexible = true}, "host", CELL_TEXT},
    {{.title = "PID", .right = true, .leave_out = 3}, "pid", CELL_NUMBER},
    {{.title = "STATE"}, "state", CELL_ALIVE},
    {{.title = "BUSY", .right = true}, "running", CELL_BUSY},
    {{.title = "DONE", .right = true, .leave_out = 4}, "succeeded", CELL_NUMBER},
    {{.title = "FAILED", .right = true}, "failed", CELL_NUMBER},
    {{.title = "SEEN", .right = true, .leave_out = 5}, "seen_ms", CELL_SINCE},
    {{.title = "UP", .right = true, .leave_out = 2}, "started_ms", CELL_SINCE},
    {{.title = "VERSION", .flexible = true, .leave_out = 1}, "version", CELL_TEXT},
};

static const struct cell_field lanes[] = {
    {{.title = "LANE", .flexible = true}, "lane", CELL_LANE},
    {{.title = "WAITING", .right = true}, "waiting", CELL_NUMBER},
    {{.title = "RUNNING", .right = true}, "running", CELL_NUMBER},
    {{.title = "OLDEST", .right = true, .leave_out = 2}, "oldest_ms", CELL_SINCE},
    {{.title = "SETTINGS", .flexible = true, .leave_out = 1}, "settings", CELL_TEXT},
};

static const struct cell_field dead[] = {
    {TASK_ID},
    {TASK_LABEL},
    {{.title = "DIED", .right = true, .leave_out = 5}, "died_ms", CELL_SINCE},
    {{.title = "CAUSE", .flexible = true}, "cause", CELL_CAUSE},
    {TASK_TRIES},
    {TASK_WHAT},
    {{.title = "REASON", .flexible = true, .optional = true, .leave_out = 3}, "reason", CELL_TEXT},
};

static const struct cell_field ended[] = {
    {TASK_ID},
    {TASK_LABEL},
    {{.title = "ENDED", .right = true}, "ended_ms", CELL_SINCE},
    {{.title = "END"}, "end", CELL_END},
    {TASK_TRIES},
    {{.title = "TOOK", .right = true, .leave_out = 5}, "duration_us", CELL_SPAN_US},
    {{.title = "HOST", .flexible = true, .leave_out = 3}, "worker", CELL_HOST},
    {TASK_LANE},
    {TASK_WHAT},
};

#define LIST(fields) fields, sizeof(fields) / sizeof *(fields)

static const struct {
    const struct cell_field *fields;
    size_t count;
    const char *keys[3]; /* members */
} lists[LIST_KINDS] = {
    [LIST_RUNNING] = {LIST(running), {"tid"}},
    [LIST_WAITING] = {LIST(waiting), {"tid"}},
    [LIST_WORKERS] = {LIST(workers), {"host", "pid"}},
    [LIST_LANES] = {LIST(lanes), {"lane"}},
    [LIST_DEAD] = {LIST(dead), {"dead_id"}},
    [LIST_ENDED] = {LIST(ended), {"tid", "ended_ms"}},
    [LIST_QUEUES] = {LIST(queues), {"queue"}},
};

/* ---- rows */

json_t *list_queue_row(json_t *summary)
{
    static const char *const names[] = {"queue", "state", "reason", "reason_base64"};
    static const char *const figures[] = {"ready", "running", "dead"};
    const json_t *status = json_object_get(summary, "status");
    const json_t *read = json_object_get(status, "figures");
    const json_t *all = json_object_get(status, "workers");
    json_t *problem = json_array_get(json_object_get(status, "problems"), 0);
    json_t *row = json_object();
    int64_t live = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(summary, names[i]);
        if (value) {
            output_put(&row, names[i], json_incref(value));
        }
    }
    for (size_t i = 0; read && i < sizeof figures / sizeof *figures; i++) {
        output_put(&row, figures[i], json_integer(cells_number(read, figures[i])));
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        live += json_is_true(json_object_get(json_array_get(all, i), "live"));
    }
    if (problem) {
        output_put(&row, "problem", json_incref(problem));
    }
    if (read) {
        output_put(&row, "delayed",
                   json_integer(cells_number(read, "delayed") + cells_number(read, "retrying")));
        output_put(&row, "workers", json_integer(live));
        output_put(&row, "oldest_ms",
                   json_integer(cells_number(read, "ready") > 0
                                    ? cells_number(read, "oldest_ready_ms")
                                    : -1));
        output_put(&row, "rate", json_real(json_number_value(json_object_get(status, "rate"))));
    }
    json_decref(summary);
    return row;
}

static void add_rows(json_t **rows, const json_t *more)
{
    for (size_t i = 0; i < json_array_size(more); i++) {
        output_push(rows, json_incref(json_array_get(more, i)));
    }
}

json_t *list_rows(enum list_kind kind, const json_t *page)
{
    static const char *const members[LIST_KINDS] = {[LIST_RUNNING] = "running",
                                                    [LIST_LANES] = "lanes",
                                                    [LIST_DEAD] = "dead",
                                                    [LIST_ENDED] = "ended"};
    json_t *rows = json_array();

    if (kind == LIST_WORKERS) {
        add_rows(&rows, json_object_get(json_object_get(page, "status"), "workers"));
    } else if (kind == LIST_WAITING) {
        add_rows(&rows, json_object_get(page, "ready"));
        add_rows(&rows, json_object_get(page, "delayed"));
    } else if (members[kind]) {
        add_rows(&rows, json_object_get(page, members[kind]));
    }
    return rows;
}

int64_t list_total(enum list_kind kind, const json_t *page)
{
    const json_t *status = json_object_get(page, "status");
    const json_t *figures = json_object_get(status, "figures");

    switch (kind) {
    case LIST_RUNNING:
        return cells_number(figures, "running");
    case LIST_WAITING:
        return cells_number(figures, "ready") + cells_number(figures, "delayed") +
               cells_number(figures, "retrying");
    case LIST_WORKERS:
        return (int64_t)json_array_size(json_object_get(status, "workers"));
    case LIST_LANES:
        return cells_number(figures, "lanes");
    case LIST_DEAD:
        return cells_number(figures, "dead");
    case LIST_ENDED:
        return LIST_UNCOUNTED;
    case LIST_QUEUES:
    case LIST_KINDS:
        break;
    }
    return 0;
}

/* ---- filter and order */

static bool contains(struct bytes text, struct bytes part)
{
    for (size_t i = 0; i + part.size <= text.size; i++) {
        if (strncasecmp(text.data + i, part.data, part.size) == 0) {
            return true;
        }
    }
    return false;
}

static bool matches(enum list_kind kind, const json_t *row, struct bytes text)
{
    struct buffer decoded = BUFFER_INIT;
    struct bytes value;
    bool found = false;

    for (size_t i = 0; i < lists[kind].count && !found; i++) {
        found = output_get_bytes(row, lists[kind].fields[i].member, &decoded, &value) == 0 &&
                contains(value, text);
    }
    buffer_free(&decoded);
    return found;
}

void list_filter(enum list_kind kind, json_t **rows, struct bytes text)
{
    json_t *kept;

    if (text.size == 0) {
        return;
    }
    kept = json_array();
    for (size_t i = 0; i < json_array_size(*rows); i++) {
        json_t *row = json_array_get(*rows, i);
        if (matches(kind, row, text)) {
            output_push(&kept, json_incref(row));
        }
    }
    json_decref(*rows);
    *rows = kept;
}

struct item {
    json_t *row;
    size_t place; /* in which it was read */
};

struct order {
    const struct cell_field *field;
    bool reverse;
};

static bool is_text(enum cell_format format)
{
    return format == CELL_TEXT || format == CELL_ID || format == CELL_LANE || format == CELL_HOST ||
           format == CELL_STATE || format == CELL_ALIVE || format == CELL_CAUSE ||
           format == CELL_END || format == CELL_WHAT;
}

static int compare_texts(const json_t *a, const json_t *b, const char *member)
{
    struct buffer buffers[2] = {BUFFER_INIT, BUFFER_INIT};
    struct bytes x = {"", 0}, y = {"", 0};
    int result;

    /* a member that is missing is empty */
    (void)output_get_bytes(a, member, &buffers[0], &x);
    (void)output_get_bytes(b, member, &buffers[1], &y);
    result = bytes_compare(x, y);
    buffer_free(&buffers[0]);
    buffer_free(&buffers[1]);
    return result;
}

/* The larger one comes first; a time since then is the larger, the earlier it was. */
static int compare_numbers(const json_t *a, const json_t *b, const struct cell_field *field)
{
    double x = json_number_value(json_object_get(a, field->member));
    double y = json_number_value(json_object_get(b, field->member));
    int result = (x < y) - (x > y);

    return field->format == CELL_SINCE || field->format == CELL_DUE ? -result : result;
}

static int compare(const void *a, const void *b, void *context)
{
    const struct item *x = a, *y = b;
    const struct order *order = context;
    int result = is_text(order->field->format) ? compare_texts(x->row, y->row, order->field->member)
                                               : compare_numbers(x->row, y->row, order->field);

    result = order->reverse ? -result : result;
    return result != 0 ? result : (x->place > y->place) - (x->place < y->place);
}

void list_sort(enum list_kind kind, json_t **rows, int column, bool reverse)
{
    size_t count = json_array_size(*rows);
    struct item *items = calloc(count + 1, sizeof *items);
    struct order order = {column >= 0 ? &lists[kind].fields[column] : NULL, reverse};
    json_t *sorted = items ? json_array() : NULL;

    for (size_t i = 0; items && i < count; i++) {
        size_t place = order.field || !reverse ? i : count - 1 - i;
        items[i] = (struct item){json_array_get(*rows, place), place};
    }
    if (items && order.field) {
        qsort_r(items, count, sizeof *items, compare, &order);
    }
    for (size_t i = 0; items && i < count; i++) {
        output_push(&sorted, json_incref(items[i].row));
    }
    free(items);
    json_decref(*rows);
    *rows = sorted;
}

int list_next_column(enum list_kind kind, int column)
{
    return column + 1 < (int)lists[kind].count ? column + 1 : LIST_UNSORTED;
}

const char *list_title(enum list_kind kind, int column)
{
    return lists[kind].fields[column].column.title;
}

void list_key(enum list_kind kind, const json_t *row, struct buffer *key)
{
    const char *const *names = lists[kind].keys;
    struct buffer decoded = BUFFER_INIT;
    struct bytes value;

    /* a failed append marks the buffer */
    for (size_t i = 0; names[i]; i++) {
        if (output_get_bytes(row, names[i], &decoded, &value) == 0) {
            (void)buffer_append(key, value.data, value.size);
        } else {
            (void)buffer_printf(key, ":%lld", (long long)cells_number(row, names[i]));
        }
    }
    buffer_free(&decoded);
}

/* ---- */

/* A queue that cannot be read has a reason instead of figures. */
static void add_row(struct table *table, enum list_kind kind, const json_t *row, int64_t now_ms,
                    bool narrow)
{
    bool has_figures = kind != LIST_QUEUES || json_object_get(row, "ready");

    for (size_t i = 0; i < lists[kind].count; i++) {
        if (!has_figures && strcmp(lists[kind].fields[i].member, "ready") == 0) {
            cells_add_bytes(table, row, "reason");
            table_span(table);
            return;
        }
        cells_add(table, row, &lists[kind].fields[i], now_ms, narrow);
    }
}

int list_render(enum list_kind kind, const json_t *rows, int64_t now_ms, size_t width, bool color,
                struct buffer *out)
{
    struct table_column *columns = calloc(lists[kind].count, sizeof *columns);
    struct table table = {.columns = columns, .column_count = lists[kind].count};
    int result;

    if (!columns) {
        return -1;
    }
    for (size_t i = 0; i < lists[kind].count; i++) {
        columns[i] = lists[kind].fields[i].column;
    }
    for (size_t i = 0; i < json_array_size(rows); i++) {
        add_row(&table, kind, json_array_get(rows, i), now_ms, width < NARROW);
    }
    result = table_render(&table, out, 0, width, color);
    table_free(&table);
    free(columns);
    return result;
}
