/*
 * The herald: runs [dead] notify for dead letters, some at a time, beside the tasks and in nobody's
 * way. Redis hands each letter to one worker of the queue; a worker that dies over it leaves it to
 * another.
 */
#ifndef LEAT_DAEMON_HERALD_H
#define LEAT_DAEMON_HERALD_H

#include <stdbool.h>

#include "config/config.h"
#include "daemon/session.h"
#include "exec/runner.h"

struct herald;

/* tasks: the runner beside which it runs its own. All must outlive it. Returns NULL with errno. */
struct herald *herald_new(const struct config *config, struct session *session,
                          struct runner *tasks, const struct queue *queue);
void herald_set_config(struct herald *herald, const struct config *config);
void herald_free(struct herald *herald); /* before the tasks' runner */

/* This worker made a dead letter. */
void herald_ask(struct herald *herald);

/* Others may have made some; and what did not work may work now. Once a scan period, and when the
 * session is up. */
void herald_look(struct herald *herald);

/* Takes no more letters: the worker stops. */
void herald_close(struct herald *herald);

/* Ends what runs: JOB_STOP or JOB_KILL_NOW. Another worker is given those letters. */
void herald_end(struct herald *herald, enum job_event event);

/* Nothing runs, and nothing is left to be told to Redis that it would hear now. */
bool herald_is_quiet(const struct herald *herald);

/* Once in each turn of the loop: sends what is to be sent. */
void herald_turn(struct herald *herald);

#endif
