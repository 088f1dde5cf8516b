/*
 * The state of a queue in one word.
 */
#include "view/queue_state.h"

const char *queue_state_name(enum queue_state state)
{
    static const char *const names[] = {[QUEUE_STATE_HEALTHY] = "healthy",
                                        [QUEUE_STATE_UNHEALTHY] = "unhealthy",
                                        [QUEUE_STATE_PAUSED] = "paused",
                                        [QUEUE_STATE_INVALID] = "invalid",
                                        [QUEUE_STATE_UNREACHABLE] = "unreachable",
                                        [QUEUE_STATE_DENIED] = "denied",
                                        [QUEUE_STATE_FAILED] = "failed"};

    return names[state];
}

enum queue_state queue_state_of_error(enum redis_error error)
{
    return error == REDIS_ERROR_LOST                                     ? QUEUE_STATE_UNREACHABLE
           : error == REDIS_ERROR_DENIED || error == REDIS_ERROR_NO_LOAD ? QUEUE_STATE_DENIED
                                                                         : QUEUE_STATE_FAILED;
}
