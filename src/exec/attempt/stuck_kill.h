/*
 * Handles a KILL that is stuck: a process does not die, because it hangs in the kernel, is traced,
 * or entered the cgroup after the KILL. It is killed again, less and less often, and reported once.
 * Its slot stays taken, since the next attempt must not run beside it.
 */
#ifndef LEAT_EXEC_ATTEMPT_STUCK_KILL_H
#define LEAT_EXEC_ATTEMPT_STUCK_KILL_H

#include <stdbool.h>

#include "exec/attempt/child_state.h"

/* Notes the first KILL. */
void stuck_kill_begin(struct child *child);
bool stuck_kill_has_begun(const struct child *child);

/* Kills a child again that is not gone yet, and reports it, if it is time for that. Returns the
 * seconds until the next time. */
double stuck_kill_look(struct child *child);

#endif
