/*
 * Environment tags: how to recognize the processes of a task, wherever they went. They inherit
 * LEAT_WORKER, LEAT_TASK and LEAT_FENCE, which together belong to one attempt. /proc shows the
 * environment with which a process was executed, unless the process has overwritten it, was
 * executed with another environment, or belongs to another user.
 */
#ifndef LEAT_EXEC_TREE_ENV_TAG_H
#define LEAT_EXEC_TREE_ENV_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "queue/task.h"

/* Returns the tag that all attempts of a worker have in common; 0 if worker is NULL. */
uint64_t env_tag_worker(const char *worker);

/* Returns the tag of this attempt: a 64-bit hash of LEAT_WORKER, LEAT_TASK and LEAT_FENCE that is
 * never 0. worker is the worker's tag. */
uint64_t env_tag_attempt(uint64_t worker, const struct task *task);

/* Returns the tag of the attempt that the process belongs to; 0: it belongs to none, or that cannot
 * be known; ENV_TAG_BLANK: its environment is empty, as it is for a moment when a process executes
 * a program, and while it exits. Reads one file, or one for each thread if the first thread shows
 * nothing. Allocates nothing. */
#define ENV_TAG_BLANK UINT64_C(2) /* all other tags are odd */
uint64_t env_tag_read(pid_t pid);

/* Returns true if the process belongs to an attempt of the worker with that tag. Reads as
 * env_tag_read. */
bool env_tag_is_of_worker(pid_t pid, uint64_t worker);

/* Kills all processes that belong to attempts of a dead worker. Returns how many there were. Reads
 * all of /proc, and the environment of each process. */
size_t env_tag_kill(const char *worker);

#endif
