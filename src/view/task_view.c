/*
 * One task, as leat_show answers it.
 */
#include "view/task_view.h"

#include <hiredis/hiredis.h>

#include "view/history.h"
#include "view/output_json.h"
#include "view/reply_fields.h"
#include "view/reply_json.h"
#include "view/usage.h"

struct task_view task_view_read(const struct redisReply *reply)
{
    return (struct task_view){reply->element[2], reply->element[3],
                              fields_value(reply->element[4])};
}

json_t *task_view_json(const struct task_view *task)
{
    json_t *object = fields_json(task->row);
    json_t *begun = json_object_get(object, "begun");
    struct bytes usage = fields_bytes(task->row, "usage");

    /* a dead letter calls it begun; in JSON, names of times end in _ms */
    if (begun) {
        output_put(&object, "begun_ms", json_incref(begun));
    }
    (void)json_object_del(object, "begun");
    /* either of them may be missing */
    (void)json_object_del(object, "command_base64");
    (void)json_object_del(object, "command");
    if (usage.size > 0) {
        output_put(&object, "usage", usage_json(usage));
    }
    output_put(&object, "fields", fields_pairs_json(task->fields));
    output_put(&object, "history", history_json(task->history));
    return object;
}
