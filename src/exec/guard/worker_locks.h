/*
 * Hold files of the workers of one queue on this host: which of them live, and of which it is
 * proved that nothing is left, so that their tasks can be taken over at once. Each worker has one,
 * FOLDER/CONSUMER, and keeps it locked (flock) together with its guard. Its lines:
 *
 *   worker CONSUMER
 *   boot BOOT_ID        of the kernel under which it ran
 *   pid PID             of the daemon
 *   cgroup PATH         its own, or -
 *   dead CONSUMER       added by the guard when every process of its tasks is gone
 *
 * A free lock alone proves nothing: who kills daemon and guard need not have killed the tasks. The
 * name is the worker's, new at each start, so a reused process id or host name proves nothing
 * wrong.
 */
#ifndef LEAT_EXEC_GUARD_WORKER_LOCKS_H
#define LEAT_EXEC_GUARD_WORKER_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum worker_lock_state {
    WORKER_LOCK_NONE,     /* no such file, or not one that a worker of this user wrote */
    WORKER_LOCK_LIVES,    /* locked */
    WORKER_LOCK_ENDS,     /* locked, though its daemon is gone: the guard is at work */
    WORKER_LOCK_PROVED,   /* nothing of its tasks is left */
    WORKER_LOCK_UNPROVED, /* nobody holds it, and whether its tasks still run is not known */
};

struct worker_lock_found {
    char consumer[128];
    char cgroup[512]; /* "": none, or that of another kernel; only where it is unproved */
    int64_t dead_ms;  /* wall clock: when the guard added its line; 0: it did not */
};

/* STATE/QUEUE, the folder of the queue's hold files. state NULL: the first of $RUNTIME_DIRECTORY,
 * else /run/leat. For free; NULL without memory. */
char *worker_locks_folder(const char *state, const char *queue);

/* The file names in the folder, NULL-terminated, for holds_list_free. NULL without memory or folder
 * (errno). */
char **worker_locks_list(const char *folder);
void worker_locks_list_free(char **names);

/* Looks at one. found is set unless HOLDS_NONE is returned. */
enum worker_lock_state worker_locks_look(const char *folder, const char *name,
                                         struct worker_lock_found *found);

/* Removes it; that it is gone already is fine. Returns 0, or −1 with errno. */
int worker_locks_remove(const char *folder, const char *name);

#endif
