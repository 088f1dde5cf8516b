/*
 * Lists of names and values in replies, as JSON.
 */
#include "view/reply_json.h"

#include <stdbool.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/escape.h"
#include "view/output_json.h"
#include "view/reply_fields.h"

#define MOST_NAME 1024 /* bytes of a name, escaped: a setting has the name of its lane */

/* Other members are text, even if they look like a number: a label or an exit status may. */
static bool is_number_name(const char *name)
{
    static const char *const numbers[] = {
        "max_crashes", "max_length",   "max_task",    "sizes",    "dead_keep_number",
        "hold_until",  "outage_until", "floor_until", "protocol", "begun",
        "fence",       "attempts",     "duration_us"};
    size_t size = strlen(name);

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(name, numbers[i]) == 0) {
            return true;
        }
    }
    return size > 3 && strcmp(name + size - 3, "_ms") == 0;
}

static bool is_stamp_name(const char *name)
{
    return strcmp(name, "paused") == 0 || strncmp(name, "drain:", 6) == 0;
}

json_t *fields_json(const struct redisReply *fields)
{
    json_t *object = json_object();

    for (size_t i = 0; i < fields_count(fields); i++) {
        const struct redisReply *value = fields_value_at(fields, i);
        char name[MOST_NAME];
        escape_copy(fields_name_at(fields, i), name, sizeof name);
        if (is_stamp_name(name)) {
            output_put(&object, name, json_integer(fields_stamp(fields_value(value), NULL)));
        } else if (value->type == REDIS_REPLY_INTEGER || is_number_name(name)) {
            output_put(&object, name, json_integer(fields_integer(value, 0)));
        } else {
            output_put_bytes(&object, name, fields_value(value));
        }
    }
    return object;
}

json_t *fields_pairs_json(const struct redisReply *fields)
{
    json_t *array = json_array();

    for (size_t i = 0; i < fields_count(fields); i++) {
        json_t *field = json_object();
        output_put_bytes(&field, "name", fields_name_at(fields, i));
        output_put_bytes(&field, "value", fields_value(fields_value_at(fields, i)));
        output_push(&array, field);
    }
    return array;
}
