/*
 * The parts of rows that are made for people.
 */
#include "view/shown.h"

#include <string.h>

#include <hiredis/hiredis.h>

#include "view/output_json.h"
#include "view/reply_fields.h"
#include "view/rows_json.h"

#define CAUSE_SIZE 64
#define STATUS_SIZE 128

void shown_append_cause(struct bytes cause, struct bytes status, struct buffer *out)
{
    char name[CAUSE_SIZE], detail[STATUS_SIZE];

    bytes_copy(cause, name, sizeof name);
    bytes_copy(status, detail, sizeof detail);
    if (status.size == 0 || strncmp(detail, name, strlen(name)) != 0) {
        (void)buffer_append_text(out, name);
        (void)buffer_append_text(out, status.size > 0 ? " " : "");
    }
    (void)buffer_append_text(out, detail);
}

void shown_append_end(const struct redisReply *row, struct buffer *out)
{
    struct bytes outcome = fields_bytes(row, "outcome"), cause = fields_bytes(row, "cause");

    (void)buffer_append(out, outcome.data, outcome.size);
    if (bytes_equal(outcome, "dead") && cause.size > 0) {
        (void)buffer_append_text(out, ": ");
        shown_append_cause(cause, fields_bytes(row, "status"), out);
    }
}

json_t *shown_row(const struct redisReply *row)
{
    json_t *object = rows_json(row);
    struct buffer end = BUFFER_INIT;

    if (rows_is_ended(row)) {
        shown_append_end(row, &end);
        output_put_bytes(&object, "end", buffer_bytes(&end));
        if (end.failed) {
            json_decref(object);
            object = NULL;
        }
        buffer_free(&end);
    }
    return object;
}
