/*
 * leat status for all queues of /etc/leat: the table for people, and the same as JSON.
 */
#include <string.h>

#include "cli/lib/table.h"
#include "cli/status/overview.h"
#include "view/moment.h"

enum column { QUEUE, STATE, READY, RUNNING, DELAYED, DEAD, WORKERS, OLDEST, COLUMNS };

static enum text_style state_style(enum queue_state state)
{
    return state == QUEUE_STATE_HEALTHY  ? TEXT_GREEN
           : state == QUEUE_STATE_PAUSED ? TEXT_YELLOW
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

static void add_line(struct table *table, const struct overview_line *line)
{
    table_add(table, line->name, strlen(line->name));
    table_printf(table, "%s", queue_state_name(line->state));
    table_style(table, state_style(line->state));
    if (!line->page) {
        table_add(table, line->reason.data, line->reason.size);
        table_span(table);
        return;
    }
    for (enum column column = READY; column < COLUMNS; column++) {
        add_figure(table, line, column);
    }
}

static int render_table(const struct overview *overview, const struct output *output,
                        struct buffer *out)
{
    static const struct table_column columns[COLUMNS] = {
        [QUEUE] = {.title = "QUEUE", .flexible = true},
        [STATE] = {.title = "STATE"},
        [READY] = {.title = "READY", .right = true},
        [RUNNING] = {.title = "RUNNING", .right = true, .leave_out = 2},
        [DELAYED] = {.title = "DELAYED", .right = true, .leave_out = 1},
        [DEAD] = {.title = "DEAD", .right = true},
        [WORKERS] = {.title = "WORKERS", .right = true, .leave_out = 4},
        [OLDEST] = {.title = "OLDEST", .right = true, .leave_out = 3},
    };
    struct table table = {.columns = columns, .column_count = COLUMNS};
    int result;

    for (size_t i = 0; i < overview->count; i++) {
        add_line(&table, &overview->lines[i]);
    }
    result = table_render(&table, out, 0, output->width, output->color);
    table_free(&table);
    return result;
}

/* Prints a line for each problem: "! QUEUE: problem". */
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
        if (overview->lines[i].state == QUEUE_STATE_UNHEALTHY) {
            render_problems(&overview->lines[i], output->width, out);
        }
    }
    return out->failed ? -1 : 0;
}

static json_t *line_json(const struct overview_line *line)
{
    json_t *object;

    if (line->page) {
        return json_incref(line->page);
    }
    object = json_pack("{s:s, s:b, s:s, s:i}", "queue", line->name, "healthy", 0, "state",
                       queue_state_name(line->state), "exit", line->exit_status);
    output_put_bytes(&object, "error", buffer_bytes(&line->reason));
    return object;
}

json_t *overview_json(const struct overview *overview)
{
    json_t *array = json_array();

    for (size_t i = 0; i < overview->count; i++) {
        output_push(&array, line_json(&overview->lines[i]));
    }
    return array;
}
