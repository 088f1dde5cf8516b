/*
 * The fields of a task that limit what all its processes together may use. They can only lower what
 * the worker's config allows.
 */
#ifndef LEAT_QUEUE_TASK_BOUNDS_H
#define LEAT_QUEUE_TASK_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Limits for all processes of a task together. */
enum task_bound {
    TASK_MEMORY_MAX,  /* bytes */
    TASK_MEMORY_HIGH, /* bytes */
    TASK_PIDS_MAX,    /* processes and threads */
    TASK_CPU_MAX,     /* percent of one CPU */
    TASK_CPU_WEIGHT,
    TASK_IO_WEIGHT,
    TASK_BOUNDS,
};

/* The name of the field, which is also the name of the config's key in [isolation]. */
const char *task_bound_name(size_t bound);

/* The limit of that name; TASK_BOUNDS: none. */
size_t task_bound_named(struct bytes name);

/* Whether any is set. */
bool task_is_bounded(const int64_t bounds[TASK_BOUNDS]);

/* Sets one of the bounds to the value of its field; an empty value sets nothing. Returns NULL, or
 * what the value should be: "a size such as 64M". */
const char *task_bound_take(int64_t bounds[TASK_BOUNDS], size_t bound, const struct bytes *value);

#endif
