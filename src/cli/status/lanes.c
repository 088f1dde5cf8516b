/*
 * leat status: reads and shows the longest lanes.
 */
#include "cli/status/lanes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/table.h"
#include "queue/calls.h"
#include "view/moment.h"
#include "view/reply_fields.h"

#define PAGE 500 /* lanes per call, which takes Redis a few ms */

/* ---- reading */

static void free_lane(struct lane *lane)
{
    buffer_free(&lane->name);
    buffer_free(&lane->settings);
}

static int read_lane(const struct redisReply *row, struct lane *lane)
{
    struct bytes name = fields_bytes(row, "lane"), settings = fields_bytes(row, "settings");

    *lane = (struct lane){
        .waiting = fields_number(row, "waiting", 0),
        .running = fields_number(row, "running", 0),
        .oldest_ms = fields_number(row, "oldest_ms", 0),
    };
    if (buffer_append(&lane->name, name.data, name.size) == 0 &&
        buffer_append(&lane->settings, settings.data, settings.size) == 0) {
        return 0;
    }
    free_lane(lane);
    return -1;
}

static bool is_kept(const struct lanes *lanes, struct bytes name)
{
    for (size_t i = 0; i < lanes->count; i++) {
        const struct buffer *kept = &lanes->list[i].name;
        if (kept->size == name.size &&
            (name.size == 0 || memcmp(kept->data, name.data, name.size) == 0)) {
            return true;
        }
    }
    return false;
}

/* The longest first; of those that are equally long, the one with more running tasks. */
static bool is_before(const struct lane *lane, int64_t waiting, int64_t running)
{
    return lane->waiting > waiting || (lane->waiting == waiting && lane->running >= running);
}

/* Puts it where it belongs, if it is among the longest; they come in the order of their names. A
 * lane without waiting tasks may come twice. */
static int keep_lane(struct lanes *lanes, const struct redisReply *row)
{
    int64_t waiting = fields_number(row, "waiting", 0), running = fields_number(row, "running", 0);
    size_t place = lanes->count;

    if (waiting == 0 && is_kept(lanes, fields_bytes(row, "lane"))) {
        return 0;
    }
    lanes->total++;
    while (place > 0 && !is_before(&lanes->list[place - 1], waiting, running)) {
        place--;
    }
    if (place == lanes->most) {
        return 0;
    }
    if (lanes->count == lanes->most) {
        free_lane(&lanes->list[--lanes->count]);
    }
    memmove(&lanes->list[place + 1], &lanes->list[place],
            (lanes->count - place) * sizeof *lanes->list);
    lanes->count++;
    lanes->list[place] = (struct lane){0};
    return read_lane(row, &lanes->list[place]);
}

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
    for (size_t i = 0; i < reply->element[2]->elements && status == EX_OK; i++) {
        if (keep_lane(lanes, reply->element[2]->element[i]) != 0) {
            status = cli_no_memory();
        }
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

    lanes->list = calloc(lanes->most + 1, sizeof *lanes->list);
    if (!lanes->list) {
        return cli_no_memory();
    }
    do {
        status = read_page(cli, lanes, &cursor);
    } while (status == EX_OK && cursor.size > 0);
    buffer_free(&cursor);
    return status;
}

void lanes_free(struct lanes *lanes)
{
    for (size_t i = 0; i < lanes->count; i++) {
        free_lane(&lanes->list[i]);
    }
    free(lanes->list);
    *lanes = (struct lanes){0};
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

static json_t *lane_json(const struct lane *lane)
{
    json_t *object = json_pack("{s:I, s:I, s:I}", "waiting", (json_int_t)lane->waiting, "running",
                               (json_int_t)lane->running, "oldest_ms", (json_int_t)lane->oldest_ms);

    output_put_bytes(&object, "lane", buffer_bytes(&lane->name));
    output_put_bytes(&object, "settings", buffer_bytes(&lane->settings));
    return object;
}

json_t *lanes_json(const struct lanes *lanes)
{
    json_t *array = json_array();

    for (size_t i = 0; i < lanes->count; i++) {
        output_push(&array, lane_json(&lanes->list[i]));
    }
    return array;
}
