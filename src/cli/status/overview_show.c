/*
 * leat status for all queues of /etc/leat: the table for people, and the same as JSON.
 */
#include <string.h>

#include "cli/lib/moment.h"
#include "cli/lib/table.h"
#include "cli/status/overview.h"

enum column { QUEUE, STATE, READY, RUNNING, DELAYED, DEAD, WORKERS, OLDEST, COLUMNS };

/* On a narrow terminal these columns are left out, the first one first. */
static const enum column dispensable[] = {DELAYED, RUNNING, OLDEST, WORKERS};
enum { DISPENSABLE = sizeof dispensable / sizeof *dispensable };

static const char *state_name(enum overview_state state)
{
    switch (state) {
    case OVERVIEW_HEALTHY:
        return "healthy";
    case OVERVIEW_UNHEALTHY:
        return "unhealthy";
    case OVERVIEW_PAUSED:
        return "paused";
    case OVERVIEW_INVALID:
        return "invalid";
    case OVERVIEW_UNREACHABLE:
        return "unreachable";
    case OVERVIEW_DENIED:
        return "denied";
    case OVERVIEW_FAILED:
        return "failed";
    }
    return "failed";
}

static enum text_style state_style(enum overview_state state)
{
    return state == OVERVIEW_HEALTHY  ? TEXT_GREEN
           : state == OVERVIEW_PAUSED ? TEXT_YELLOW
                                      : TEXT_RED;
}

static void add_figure(struct table *table, const struct overview_line *line, enum column column)
{
    const int64_t figures[COLUMNS] = {
        [READY] = line->ready,
        [RUNNING] = line->running,
        [DELAYED] = line->delayed,
        [DEAD] = line->dead,
        [WORKERS] = (int64_t)line->live_workers,
    };
    char time[MOMENT_SIZE] = "-";

    if (column == OLDEST) {
        if (line->oldest_ms >= 0) {
            moment_span(line->oldest_ms, time, sizeof time);
        }
        table_printf(table, "%s", time);
        return;
    }
    table_printf(table, "%lld", (long long)figures[column]);
    if (column == DEAD && line->dead > 0) {
        table_style(table, TEXT_RED);
    }
}

/* shown: the columns of the table, of which the first two are always there. */
static void add_line(struct table *table, const struct overview_line *line,
                     const enum column *shown)
{
    table_add(table, line->name, strlen(line->name));
    table_printf(table, "%s", state_name(line->state));
    table_style(table, state_style(line->state));
    if (line->page) {
        for (size_t i = 2; i < table->column_count; i++) {
            add_figure(table, line, shown[i]);
        }
        return;
    }
    table_add(table, line->reason.data, line->reason.size);
    table_span(table);
}

/* Without the first `left_out` of the dispensable columns. Returns how many there are. */
static size_t choose_columns(size_t left_out, enum column *shown, struct table_column *columns)
{
    static const struct table_column all[COLUMNS] = {
        [QUEUE] = {"QUEUE", false, true},     [STATE] = {"STATE", false, false},
        [READY] = {"READY", true, false},     [RUNNING] = {"RUNNING", true, false},
        [DELAYED] = {"DELAYED", true, false}, [DEAD] = {"DEAD", true, false},
        [WORKERS] = {"WORKERS", true, false}, [OLDEST] = {"OLDEST", true, false},
    };
    size_t count = 0;

    for (size_t i = 0; i < COLUMNS; i++) {
        bool out = false;
        for (size_t j = 0; j < left_out; j++) {
            out = out || dispensable[j] == i;
        }
        if (out) {
            continue;
        }
        shown[count] = (enum column)i;
        columns[count++] = all[i];
    }
    return count;
}

static int render_table(const struct overview *overview, const struct output *output,
                        struct buffer *out)
{
    int result = -1;
    bool fits = false;

    for (size_t left_out = 0; left_out <= DISPENSABLE && !fits; left_out++) {
        struct table_column columns[COLUMNS];
        enum column shown[COLUMNS];
        struct table table = {.columns = columns};
        table.column_count = choose_columns(left_out, shown, columns);
        for (size_t i = 0; i < overview->count; i++) {
            add_line(&table, &overview->lines[i], shown);
        }
        fits = output->width == 0 || left_out == DISPENSABLE ||
               table_least_width(&table) <= output->width;
        if (fits) {
            result = table_render(&table, out, 0, output->width, output->color);
        }
        table_free(&table);
    }
    return result;
}

/* What is not healthy, a line each: "! QUEUE: problem". */
static void render_problems(const struct overview_line *line, size_t width, struct buffer *out)
{
    const char *at = line->reason.data, *end;

    /* a failed append marks the buffer */
    for (size_t left = line->reason.size; left > 0; left -= (size_t)(end + 1 - at), at = end + 1) {
        size_t start = out->size, size;
        end = memchr(at, '\n', left);
        (void)buffer_append_text(out, "! ");
        (void)text_append(out, line->name, strlen(line->name));
        (void)buffer_append_text(out, ": ");
        (void)text_append(out, at, (size_t)(end - at));
        if (width > 0 && !out->failed) {
            size = text_fit(out->data + start, out->size - start, width);
            out->size = start + size;
        }
        (void)buffer_append_text(out, "\n");
    }
}

int overview_render(const struct overview *overview, const struct output *output,
                    struct buffer *out)
{
    if (render_table(overview, output, out) != 0) {
        return -1;
    }
    for (size_t i = 0; i < overview->count; i++) {
        if (overview->lines[i].state == OVERVIEW_UNHEALTHY) {
            render_problems(&overview->lines[i], output->width, out);
        }
    }
    return out->failed ? -1 : 0;
}

static json_t *line_json(const struct overview_line *line)
{
    const struct buffer *why = &line->reason;
    json_t *object;

    if (line->page) {
        return json_incref(line->page);
    }
    object = json_pack("{s:s, s:b, s:s, s:i}", "queue", line->name, "healthy", 0, "state",
                       state_name(line->state), "exit", line->exit_status);
    if (object && output_json_bytes(object, "error", (struct bytes){why->data, why->size}) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *overview_json(const struct overview *overview)
{
    json_t *array = json_array();

    for (size_t i = 0; i < overview->count && array; i++) {
        if (json_array_append_new(array, line_json(&overview->lines[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}
