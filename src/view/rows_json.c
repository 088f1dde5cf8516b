/*
 * Rows of leat_list as JSON.
 */
#include "view/rows_json.h"

#include <hiredis/hiredis.h>

#include "queue/shared/limits.h"
#include "view/output_json.h"
#include "view/reply_fields.h"
#include "view/reply_json.h"

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

json_t *rows_json(const struct redisReply *row)
{
    json_t *object = fields_json(row);
    struct bytes command = rows_command(row);

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
