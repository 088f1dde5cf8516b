/*
 * The herald: runs [dead] notify for dead letters, some at a time, beside the tasks and in nobody's
 * way. Redis hands each letter to one worker of the queue; a worker that dies over it leaves it to
 * another.
 */
#ifndef LEAT_DAEMON_REPORT_DEAD_HOOK_H
#define LEAT_DAEMON_REPORT_DEAD_HOOK_H

#include <stdbool.h>

#include "config/config.h"
#include "daemon/session/session.h"
#include "exec/runner.h"

struct dead_hook;

/* tasks: the runner beside which it runs its own. All must outlive it. Returns NULL with errno. */
struct dead_hook *dead_hook_new(const struct config *config, struct session *session,
                                struct runner *tasks, const struct queue *queue);
void dead_hook_set_config(struct dead_hook *dead_hook, const struct config *config);
void dead_hook_free(struct dead_hook *dead_hook); /* before the tasks' runner */

/* This worker made a dead letter. */
void dead_hook_ask(struct dead_hook *dead_hook);

/* Others may have made some; and what did not work may work now. Once a scan period, and when the
 * session is up. */
void dead_hook_look(struct dead_hook *dead_hook);

/* Takes no more letters: the worker stops. */
void dead_hook_close(struct dead_hook *dead_hook);

/* Ends what runs: JOB_STOP or JOB_KILL_NOW. Another worker is given those letters. */
void dead_hook_end(struct dead_hook *dead_hook, enum job_event event);

/* Nothing runs, and nothing is left to be told to Redis that it would hear now. */
bool dead_hook_is_quiet(const struct dead_hook *dead_hook);

/* Once in each turn of the loop: sends what is to be sent. */
void dead_hook_turn(struct dead_hook *dead_hook);

#endif
