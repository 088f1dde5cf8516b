/*
 * Access to the state of a child that several modules need.
 */
#include "exec/attempt/child_state.h"

struct attempt *child_attempt(struct child *child, size_t index)
{
    return index == 0 ? &child->attempt : child->others[index - 1];
}

void child_note_home(struct child *child, int error)
{
    if (error != 0) {
        child->host->homeless(child->host, error);
    }
}
