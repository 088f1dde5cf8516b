/*
 * The attempts of a task that have ended, as a table.
 */
#include "cli/show/history.h"

#include <stdio.h>

#include "cli/lib/table.h"
#include "view/history.h"
#include "view/moment.h"

static void add_row(struct table *table, const struct history_line *line)
{
    char time[MOMENT_SIZE];

    table_printf(table, "%lld", (long long)line->attempt);
    moment_local(line->begun_ms, time, sizeof time);
    table_printf(table, "%s", time);
    moment_span(line->ended_ms - line->begun_ms, time, sizeof time);
    table_printf(table, "%s", time);
    table_add(table, line->cause.data, line->cause.size);
    table_add(table, line->status.data, line->status.size);
    table_add(table, line->worker.data, line->worker.size);
}

int history_render(struct bytes history, const struct output *output, struct buffer *out)
{
    static const struct table_column columns[] = {
        {.title = "TRY", .right = true},
        {.title = "BEGUN", .leave_out = 2},
        {.title = "TOOK", .right = true, .leave_out = 1},
        {.title = "CAUSE"},
        {.title = "STATUS", .flexible = true},
        {.title = "WORKER", .flexible = true},
    };
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof *columns};
    struct history_line line;
    size_t at = 0;
    int result;

    while (history_next(history, &at, &line)) {
        add_row(&table, &line);
    }
    if (table_rows(&table) == 0) {
        return 0;
    }
    result = buffer_append_text(out, "attempts that ended\n");
    result = result == 0 ? table_render(&table, out, 2, output->width, output->color) : result;
    table_free(&table);
    return result;
}

void history_workers(struct bytes history, void (*visit)(void *context, struct bytes worker),
                     void *context)
{
    struct history_line line;
    size_t at = 0;

    while (history_next(history, &at, &line)) {
        visit(context, line.worker);
    }
}
