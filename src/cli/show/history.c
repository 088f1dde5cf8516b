/*
 * The attempts of a task that have ended, as a table and as JSON.
 */
#include "cli/show/history.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/lib/table.h"
#include "view/moment.h"

enum { ATTEMPT, WORKER, BEGUN, ENDED, CAUSE, STATUS, PARTS };

/* Splits the line at blanks; the last part takes the rest. Returns false if the line has another
 * form. */
static bool split(const char *line, size_t size, struct bytes parts[PARTS])
{
    const char *at = line, *end = line + size, *blank;

    for (size_t i = 0; i < PARTS; i++) {
        blank = i < STATUS ? memchr(at, ' ', (size_t)(end - at)) : end;
        if (!blank) {
            return false;
        }
        parts[i] = (struct bytes){at, (size_t)(blank - at)};
        at = blank < end ? blank + 1 : end;
    }
    return true;
}

static int64_t number_of(struct bytes text)
{
    char digits[32];
    int64_t number;

    bytes_copy(text, digits, sizeof digits);
    return units_parse_integer(digits, 0, INT64_MAX, &number) == 0 ? number : 0;
}

/* Finds the next valid line and moves *at past it. Returns false at the end. */
static bool next_line(struct bytes history, size_t *at, struct bytes parts[PARTS])
{
    while (*at < history.size) {
        const char *line = history.data + *at;
        const char *newline = memchr(line, '\n', history.size - *at);
        size_t size = newline ? (size_t)(newline - line) : history.size - *at;
        *at += size + 1;
        if (split(line, size, parts)) {
            return true;
        }
    }
    return false;
}

static void add_row(struct table *table, const struct bytes parts[PARTS])
{
    int64_t begun_ms = number_of(parts[BEGUN]), ended_ms = number_of(parts[ENDED]);
    char time[MOMENT_SIZE];

    table_add(table, parts[ATTEMPT].data, parts[ATTEMPT].size);
    moment_local(begun_ms, time, sizeof time);
    table_printf(table, "%s", time);
    moment_span(ended_ms - begun_ms, time, sizeof time);
    table_printf(table, "%s", time);
    table_add(table, parts[CAUSE].data, parts[CAUSE].size);
    table_add(table, parts[STATUS].data, parts[STATUS].size);
    table_add(table, parts[WORKER].data, parts[WORKER].size);
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
    struct bytes parts[PARTS];
    size_t at = 0;
    int result;

    while (next_line(history, &at, parts)) {
        add_row(&table, parts);
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
    struct bytes parts[PARTS];
    size_t at = 0;

    while (next_line(history, &at, parts)) {
        visit(context, parts[WORKER]);
    }
}

static json_t *line_json(const struct bytes parts[PARTS])
{
    json_t *object = json_pack("{s:I, s:I, s:I}", "attempt", (json_int_t)number_of(parts[ATTEMPT]),
                               "begun_ms", (json_int_t)number_of(parts[BEGUN]), "ended_ms",
                               (json_int_t)number_of(parts[ENDED]));

    output_put_bytes(&object, "worker", parts[WORKER]);
    output_put_bytes(&object, "cause", parts[CAUSE]);
    output_put_bytes(&object, "status", parts[STATUS]);
    return object;
}

json_t *history_json(struct bytes history)
{
    json_t *array = json_array();
    struct bytes parts[PARTS];
    size_t at = 0;

    while (next_line(history, &at, parts)) {
        output_push(&array, line_json(parts));
    }
    return array;
}
