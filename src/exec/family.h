/*
 * All that a task's process has started, as far as it can be reached: with a cgroup everything,
 * whatever it has become; without one the process group, the session, and of what has left both
 * that which came to this process as a child (see family_adopt) and still has the task's
 * environment.
 */
#ifndef LEAT_EXEC_FAMILY_H
#define LEAT_EXEC_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

#include "exec/cell.h"
#include "exec/group.h"
#include "exec/usage.h"

struct family {
    pid_t leader;
    struct cell *cell; /* not owned; NULL: it has no cgroup */
    struct group_orphans orphans;
    enum group_left left; /* by looks at this process's children, which note it here */
    bool strays;          /* some that had left the group were killed */
    bool empty;           /* nothing of it is left; stays so */
};

/* Orphans of tasks become children of this process, instead of process 1's. */
int family_adopt(void);

/* The orphans' context is not owned. */
void family_begin(struct family *family, pid_t leader, struct cell *cell,
                  const struct group_orphans *orphans);

/* TERM to the process group; what of it is stopped is woken to hear it. Only before the leader is
 * reaped, as the next two. */
void family_term(const struct family *family);

/* KILL to all of it but what without a cgroup is only found by a search. */
void family_kill(struct family *family);

/* KILL to what has left the process group: reads all of /proc where there is no cgroup. */
void family_kill_strays(struct family *family);

/* A KILL has ended it, or others may have killed its cgroup: that is not used again, see
 * cell_kill. */
void family_was_killed(struct family *family);

/* KILL once more to what has not ended; is_led: its leader is not reaped yet. */
void family_kill_again(struct family *family, bool is_led);

/* A process of it that has not ended; 0: none is found. */
pid_t family_survivor(const struct family *family, bool is_led);

/* Nothing of it is left. closely: zombies do not count either, which takes a look at all of /proc
 * where there is no cgroup. */
bool family_is_gone(struct family *family, bool closely);

/* What it has used beyond what its exit told; once it is gone. */
void family_usage(struct family *family, struct usage *usage);

#endif
