/*
 * Handles a KILL that is stuck: a process does not die, because it hangs in the kernel, is traced,
 * or entered the cgroup after the KILL. It is killed again, less and less often, and reported once.
 * Its slot stays taken, since the next attempt must not run beside it.
 */
#ifndef LEAT_EXEC_ATTEMPT_STUCK_KILL_H
#define LEAT_EXEC_ATTEMPT_STUCK_KILL_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/tree/process_tree.h"

/* Zeroed before the first KILL. */
struct stuck_kill {
    int64_t since_ns; /* CLOCK_BOOTTIME of the first KILL; 0: not killed yet */
    int64_t next_ns;  /* CLOCK_BOOTTIME of the next KILL */
    bool told;        /* it was reported */
};

/* Notes the first KILL. */
void stuck_kill_begin(struct stuck_kill *stuck_kill);

/* Kills again what is not gone yet, if it is time for that. is_led: the leader is not reaped.
 * Returns true once: when it is time to report it. */
bool stuck_kill_look(struct stuck_kill *stuck_kill, struct process_tree *tree, bool is_led);

/* Returns the seconds until the next time. */
double stuck_kill_wait_s(const struct stuck_kill *stuck_kill);

#endif
