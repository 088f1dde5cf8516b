/*
 * One task, as leat_show answers it.
 */
#ifndef LEAT_VIEW_TASK_VIEW_H
#define LEAT_VIEW_TASK_VIEW_H

#include <jansson.h>

#include "base/bytes.h"

struct redisReply;

#define TASK_VIEW_ELEMENTS 5 /* of a reply that has a task */

/* The parts of a reply of leat_show. They point into the reply. */
struct task_view {
    const struct redisReply *row, *fields;
    struct bytes history;
};

/* reply: with all elements. */
struct task_view task_view_read(const struct redisReply *reply);

/* As leat show --json has it, without the preview of the command, since the fields contain the
 * whole command. Returns NULL without memory. */
json_t *task_view_json(const struct task_view *task);

#endif
