/*
 * This worker's own lock file (exec/guard/worker_locks.h): created and locked at the start, removed
 * after a clean shutdown. Guards share its open file and thereby its lock, which is free only when
 * daemon and guards are gone.
 */
#ifndef LEAT_EXEC_GUARD_WORKER_LOCK_H
#define LEAT_EXEC_GUARD_WORKER_LOCK_H

#include <stdbool.h>
#include <stddef.h>

struct worker_lock {
    char *path; /* owned; or NULL */
    int fd;     /* open for appending; -1: no file */
};

/* Creates and locks the file in that folder. Creates the folder and its parent if they are missing.
 * cgroup is the path for the line "cgroup". Returns 0; or -1 with errno, and *lock then has no
 * file.
 */
int worker_lock_make(struct worker_lock *lock, const char *folder, const char *consumer,
                     const char *cgroup);

/* Returns true unless the file at the path is missing, or another than the one that was made. */
bool worker_lock_is_in_place(const struct worker_lock *lock);

/* Appends the line "stopped": the worker was told to stop, and could not tell Redis. Without it, a
 * crash is counted for each of its tasks. */
void worker_lock_note_stop(const struct worker_lock *lock, const char *consumer);

/* Closes the file, and removes it if `remove` is set: no proof is needed after a clean shutdown. */
void worker_lock_drop(struct worker_lock *lock, bool remove);

/* Reads the id of this boot, by which others see later whether the worker ran under their kernel.
 * Returns 0 or -1. */
int worker_lock_boot(char *id, size_t size);

#endif
