/*
 * leat status: reads and shows the longest lanes.
 */
#include "cli/status/lanes.h"

#include <stdio.h>

#include <hiredis/hiredis.h>

#include "cli/lib/table.h"
#include "queue/calls.h"
#include "view/moment.h"
#include "view/reply_fields.h"

#define PAGE 500 /* lanes per call, which takes Redis a few ms */

/* Reads one page. cursor becomes empty after the last one. */
static int read_page(struct cli *cli, struct lanes *lanes, struct buffer *cursor)
{
    struct command command = {0};
    struct redisReply *reply;
    struct bytes next;
    int status;

    queue_lanes(&command, &cli->queue, (struct bytes){cursor->data, cursor->size}, PAGE);
    reply = cli_call(cli, &command, "cannot read the lanes", 3, &status);
    if (!reply) {
        return status;
    }
    if (lanes_keep(lanes, reply->element[2]) != 0) {
        status = cli_no_memory();
    }
    next = fields_value(reply->element[1]);
    buffer_clear(cursor);
    if (status == EX_OK && buffer_append(cursor, next.data, next.size) != 0) {
        status = cli_no_memory();
    }
    freeReplyObject(reply);
    return status;
}

int lanes_read(struct cli *cli, struct lanes *lanes)
{
    struct buffer cursor = BUFFER_INIT;
    int status = EX_OK;

    if (lanes_begin(lanes) != 0) {
        return cli_no_memory();
    }
    do {
        status = read_page(cli, lanes, &cursor);
    } while (status == EX_OK && cursor.size > 0);
    buffer_free(&cursor);
    return status;
}

/* ---- showing */

static void add_lane(struct table *table, const struct lane *lane, int64_t now_ms)
{
    char age[MOMENT_SIZE];

    if (lane->name.size > 0) {
        table_add(table, lane->name.data, lane->name.size);
    } else {
        table_printf(table, "(none)");
    }
    table_printf(table, "%lld", (long long)lane->waiting);
    table_printf(table, "%lld", (long long)lane->running);
    (void)snprintf(age, sizeof age, "-");
    if (lane->oldest_ms > 0) {
        moment_span(now_ms - lane->oldest_ms, age, sizeof age);
    }
    table_printf(table, "%s", age);
    if (lane->settings.size > 0) {
        table_add(table, lane->settings.data, lane->settings.size);
    } else {
        table_printf(table, "-");
    }
}

int lanes_render(const struct lanes *lanes, int64_t now_ms, const struct output *output,
                 struct buffer *out)
{
    static const struct table_column columns[] = {
        {.title = "LANE", .flexible = true},
        {.title = "WAITING", .right = true},
        {.title = "RUNNING", .right = true},
        {.title = "OLDEST", .right = true, .leave_out = 2},
        {.title = "SETTINGS", .flexible = true, .leave_out = 1},
    };
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof *columns};
    int result;

    if (lanes->count == 0) {
        return buffer_append_text(out, "  no waiting or running tasks in lanes\n");
    }
    for (size_t i = 0; i < lanes->count; i++) {
        add_lane(&table, &lanes->list[i], now_ms);
    }
    result = table_render(&table, out, 2, output->width, output->color);
    table_free(&table);
    if (result == 0 && lanes->total > (int64_t)lanes->count) {
        result = buffer_printf(out, "  and %lld more\n",
                               (long long)(lanes->total - (int64_t)lanes->count));
    }
    return result;
}
