/*
 * The state of a queue in one word.
 */
#ifndef LEAT_VIEW_QUEUE_STATE_H
#define LEAT_VIEW_QUEUE_STATE_H

#include "redis/error.h"

/* The states after QUEUE_STATE_PAUSED have no figures. */
enum queue_state {
    QUEUE_STATE_HEALTHY,
    QUEUE_STATE_UNHEALTHY,
    QUEUE_STATE_PAUSED,
    QUEUE_STATE_INVALID,     /* its file cannot be read, or has errors */
    QUEUE_STATE_UNREACHABLE, /* its Redis */
    QUEUE_STATE_DENIED,      /* by its Redis */
    QUEUE_STATE_FAILED,      /* otherwise */
};

/* "healthy", "unreachable", …: a static string. */
const char *queue_state_name(enum queue_state state);

/* The state of a queue that could not be asked. */
enum queue_state queue_state_of_error(enum redis_error error);

#endif
