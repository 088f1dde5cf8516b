/*
 * The lock files of all workers of one queue on this host. They show which workers live, and which
 * dead workers have provably left no process behind, so that their tasks can be reclaimed at once.
 * Each worker has one, FOLDER/CONSUMER, and keeps it locked (flock) together with its guards. Its
 * lines:
 *
 *   worker CONSUMER
 *   boot BOOT_ID        of the kernel under which it ran
 *   pid PID             of the daemon
 *   cgroup PATH         its own, or -
 *   stopped CONSUMER    appended by the daemon if it was told to stop and could not tell Redis, so
 *                       that no crash is counted
 *   dead CONSUMER       appended by a guard when every process of its tasks is gone
 *
 * A free lock alone proves nothing: somebody may have killed daemon and guards but not the tasks.
 * Nor does any file prove something while the worker's guards or the process that its name holds
 * are alive: tasks of the same user can replace the file. A worker whose name has another host
 * cannot be looked at, so a file that hosts or containers share proves nothing about it.
 * The consumer's name is new at each start, so a reused process id or host name cannot be mistaken
 * for this worker.
 */
#ifndef LEAT_EXEC_GUARD_WORKER_LOCKS_H
#define LEAT_EXEC_GUARD_WORKER_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum worker_lock_state {
    WORKER_LOCK_NONE,     /* no such file, or no worker of this user wrote it */
    WORKER_LOCK_LIVES,    /* locked, or its daemon is alive */
    WORKER_LOCK_ENDS,     /* its daemon is gone, but a guard is still killing */
    WORKER_LOCK_PROVED,   /* free, and nothing of its tasks is left */
    WORKER_LOCK_UNPROVED, /* free, but its tasks may still run */
};

struct worker_lock_found {
    char consumer[128];
    char cgroup[512]; /* set for WORKER_LOCK_UNPROVED; "": none, or from before a reboot */
    bool stopped;     /* as asked: its tasks were no victims of a crash */
    int64_t dead_ms;  /* wall clock: when a guard appended its line; 0: none did */
};

/* Returns STATE/QUEUE, the folder of the queue's lock files, which the caller frees; NULL without
 * memory. state NULL means the first folder of $RUNTIME_DIRECTORY, or else /run/leat. */
char *worker_locks_folder(const char *state, const char *queue);

/* Returns the file names in the folder, NULL-terminated, for worker_locks_list_free; or NULL with
 * errno. */
char **worker_locks_list(const char *folder);
void worker_locks_list_free(char **names);

/* Judges one lock file. Sets *found unless it returns WORKER_LOCK_NONE. */
enum worker_lock_state worker_locks_look(const char *folder, const char *name,
                                         struct worker_lock_found *found);

/* Removes a lock file, which may be gone already. Returns 0, or −1 with errno. */
int worker_locks_remove(const char *folder, const char *name);

#endif
