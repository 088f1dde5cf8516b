/*
 * The dead-letter hook: runs [dead] notify for dead letters, a few at a time, in a runner of its
 * own that takes no slots from tasks. Redis hands each letter to one worker of the queue; if that
 * worker dies, another gets the letter.
 */
#ifndef LEAT_DAEMON_REPORT_DEAD_HOOK_H
#define LEAT_DAEMON_REPORT_DEAD_HOOK_H

#include <stdbool.h>

#include "daemon/session/session.h"
#include "exec/runner.h"

struct dead_hook;

/* tasks: the runner of the tasks, with which the hook's runner shares guards and cgroups; it must
 * outlive the hook. Returns NULL with errno. */
struct dead_hook *dead_hook_new(struct worker_context *worker, struct runner *tasks);

/* The config was replaced. */
void dead_hook_reload(struct dead_hook *dead_hook);
void dead_hook_free(struct dead_hook *dead_hook); /* call it before the tasks' runner is freed */

/* This worker dead-lettered a task: fetch letters. */
void dead_hook_fetch(struct dead_hook *dead_hook);

/* Fetches letters that other workers made, and retries after refusals and host faults. Call it once
 * in a scan period, and when the session comes up. */
void dead_hook_retry(struct dead_hook *dead_hook);

/* Fetches no more letters: the worker stops. */
void dead_hook_close(struct dead_hook *dead_hook);

/* Ends the running hooks; event: JOB_STOP or JOB_KILL_NOW. Another worker gets their letters. */
void dead_hook_end(struct dead_hook *dead_hook, enum job_event event);

/* Returns whether no hook runs, and no result can be sent to Redis now. */
bool dead_hook_is_quiet(const struct dead_hook *dead_hook);

/* Sends what is due. Call it once in each turn of the loop. */
void dead_hook_turn(struct dead_hook *dead_hook);

#endif
