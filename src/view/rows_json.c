/*
 * Rows of leat_list as JSON.
 */
#include "view/rows_json.h"

#include <hiredis/hiredis.h>

#include "queue/shared/limits.h"
#include "view/output_json.h"
#include "view/reply_fields.h"
#include "view/reply_json.h"
#include "view/usage.h"

struct bytes rows_command(const struct redisReply *row)
{
    struct bytes whole = fields_bytes(row, "whole_command");

    return whole.size > 0 ? whole : fields_bytes(row, "command");
}

/* Replaces the preview of the payload by one that ends with a whole character. */
static void put_starts(json_t **object, const struct redisReply *row)
{
    struct bytes payload = fields_bytes(row, "payload_start");

    (void)json_object_del(*object, "payload_start_base64");
    (void)json_object_del(*object, "payload_start");
    (void)json_object_del(*object, "fields_start_base64");
    payload.size = bytes_whole(payload.data, payload.size, QUEUE_PREVIEW);
    output_put(object, "fields_start", fields_pairs_json(fields_find(row, "fields_start")));
    output_put_bytes(object, "payload_start", payload);
}

bool rows_is_ended(const struct redisReply *row)
{
    return bytes_equal(fields_bytes(row, "state"), "done");
}

/* An ended task has no payload and no fields. Its members are texts; unknown ones are left out. */
static json_t *ended_json(const struct redisReply *row)
{
    json_t *object = fields_json(row);

    for (size_t i = 0; i < fields_count(row); i++) {
        char name[64];
        bytes_copy(fields_name_at(row, i), name, sizeof name);
        if (fields_value(fields_value_at(row, i)).size == 0) {
            (void)json_object_del(object, name);
        }
    }
    if (fields_bytes(row, "usage").size > 0) {
        output_put(&object, "usage", usage_json(fields_bytes(row, "usage")));
    }
    return object;
}

json_t *rows_json(const struct redisReply *row)
{
    struct bytes command = rows_command(row);
    json_t *object;

    if (rows_is_ended(row)) {
        return ended_json(row);
    }
    object = fields_json(row);
    put_starts(&object, row);
    if (command.size < QUEUE_PREVIEW) {
        return object;
    }

    /* a preview may end inside a character, which would turn all of it into base64 */
    (void)json_object_del(object, "command_base64");
    (void)json_object_del(object, "whole_command");
    (void)json_object_del(object, "whole_command_base64");
    if (command.size == QUEUE_PREVIEW) {
        command.size = bytes_whole(command.data, command.size, QUEUE_PREVIEW);
        output_put(&object, "command_cut", json_true());
    }
    output_put_bytes(&object, "command", command);
    return object;
}
