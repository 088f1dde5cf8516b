/*
 * The longest lanes of a queue.
 */
#include "view/lanes.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "view/output_json.h"
#include "view/reply_fields.h"

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

int lanes_begin(struct lanes *lanes)
{
    lanes->list = calloc(lanes->most + 1, sizeof *lanes->list);
    return lanes->list ? 0 : -1;
}

int lanes_keep(struct lanes *lanes, const struct redisReply *rows)
{
    for (size_t i = 0; i < rows->elements; i++) {
        if (keep_lane(lanes, rows->element[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

void lanes_free(struct lanes *lanes)
{
    for (size_t i = 0; i < lanes->count; i++) {
        free_lane(&lanes->list[i]);
    }
    free(lanes->list);
    *lanes = (struct lanes){0};
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
