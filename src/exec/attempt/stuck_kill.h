/*
 * What of a killed process does not end: it hangs in the kernel, somebody traces it, or it came to
 * the cgroup after the KILL. It is killed again, less and less often, and told of once; its place
 * stays taken, since the next attempt must not begin beside it.
 */
#ifndef LEAT_EXEC_ATTEMPT_STUCK_KILL_H
#define LEAT_EXEC_ATTEMPT_STUCK_KILL_H

#include <stdbool.h>

#include "exec/attempt/child_state.h"

/* It is killed now. */
void stuck_kill_begin(struct child *child);
bool stuck_kill_has_begun(const struct child *child);

/* It is not gone yet: kills it again where it is time for that, and tells. Returns the seconds
 * until it is again. */
double stuck_kill_look(struct child *child);

#endif
