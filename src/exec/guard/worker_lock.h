/*
 * This worker's own hold file, as exec/guard/worker_locks.h describes it: made and locked at the
 * start, removed when the worker has stopped as asked. Guards share its open file, and with that
 * its lock: it is free only when daemon and guards are gone.
 */
#ifndef LEAT_EXEC_GUARD_WORKER_LOCK_H
#define LEAT_EXEC_GUARD_WORKER_LOCK_H

#include <stdbool.h>

struct worker_lock {
    char *path; /* owned, or NULL */
    int fd;     /* open for appending; -1: there is no file */
};

/* Makes the file in that folder, which is made, too, and the one above it. cgroup: what the line
 * says. Returns 0; or -1 with errno: hold is then one without a file. */
int worker_lock_make(struct worker_lock *worker_lock, const char *folder, const char *consumer,
                     const char *cgroup);

/* Closes it. remove: nothing need be proved of this worker any more. */
void worker_lock_drop(struct worker_lock *worker_lock, bool remove);

#endif
