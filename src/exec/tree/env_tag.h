/*
 * What processes of a task are known by wherever they have gone: variables that each inherits, and
 * that nobody else has. /proc tells the environment with which a process was executed, as far as it
 * has not overwritten it, and as far as it may be read: not that of another user, nor of one that
 * has cleared it.
 */
#ifndef LEAT_EXEC_TREE_ENV_TAG_H
#define LEAT_EXEC_TREE_ENV_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "queue/task.h"

/* Of all attempts of a worker; 0: there is none (NULL). */
uint64_t env_tag_worker(const char *worker);

/* Of the task's attempt by that worker: of LEAT_WORKER, LEAT_TASK and LEAT_FENCE together, in 64
 * bits, of which none are 0. */
uint64_t env_tag_attempt(uint64_t worker, const struct task *task);

/* Of the attempt that the process belongs to; 0: of none, or it cannot be known; MARK_BLANK: its
 * environment is empty, which it is for a moment whenever a process executes. Reads a file, and
 * needs no memory but the stack. */
#define ENV_TAG_BLANK UINT64_C(2) /* all others are odd */
uint64_t env_tag_read(pid_t pid);

/* It belongs to an attempt of the worker with that mark. Like mark_read. */
bool env_tag_is_of_worker(pid_t pid, uint64_t worker);

/* KILL to all processes that belong to attempts of the worker, which is dead: whatever they are,
 * and wherever they went. Returns how many were met. Reads all of /proc, and each environment. */
size_t env_tag_kill(const char *worker);

#endif
