/*
 * The fields of a task that mean something to leat; all others become variables. The decoder of
 * tasks, the check of [intake] field and the function library have their lists from here. make
 * reads the lines that begin with FIELD for the library, which is Lua.
 */
#ifndef LEAT_QUEUE_SHARED_TASK_FIELDS_H
#define LEAT_QUEUE_SHARED_TASK_FIELDS_H

/* clang-format off */
#define TASK_FIELDS(FIELD) \
    FIELD(command) \
    FIELD(payload) \
    FIELD(id) \
    FIELD(directory) \
    FIELD(timeout) \
    FIELD(max_attempts) \
    FIELD(expires) \
    FIELD(lane) \
    FIELD(unique) \
    FIELD(unique_for) \
    FIELD(unique_next) \
    FIELD(result_ttl) \
    FIELD(live) \
    FIELD(max_output) \
    FIELD(signature) \
    FIELD(not_after)

/* Those that limit what the task may use, in the order of enum task_bound. [isolation] has keys of
 * the same names. */
#define TASK_BOUND_FIELDS(FIELD) \
    FIELD(memory_max) \
    FIELD(memory_high) \
    FIELD(pids_max) \
    FIELD(cpu_max) \
    FIELD(cpu_weight) \
    FIELD(io_weight)
/* clang-format on */

#endif
