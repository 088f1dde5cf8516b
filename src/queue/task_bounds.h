/*
 * The fields of a task that say what all its processes together may use. They can only lower what
 * the worker's config allows.
 */
#ifndef LEAT_QUEUE_TASK_BOUNDS_H
#define LEAT_QUEUE_TASK_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/task.h"

/* The field's name, which is also that of the config's key in [isolation]. */
const char *task_bound_name(size_t bound);

/* Which of them has that name; TASK_BOUNDS: none. */
size_t task_bound_named(struct bytes name);

/* It has any. */
bool task_is_bounded(const struct task *task);

/* Takes its value into the task; an empty one says nothing. Returns NULL, or what it should be: "a
 * size such as 64M". */
const char *task_bound_take(struct task *task, size_t bound, const struct bytes *value);

#endif
