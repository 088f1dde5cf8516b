/*
 * Live output: what tasks that ask for it write, sent to Redis while they run, in bounded memory
 * and at a bounded rate. A task that writes faster than Redis takes it waits, as it would for a
 * slow terminal; where Redis takes nothing for a while, output is dropped instead, and the stream
 * says how much.
 *
 * It goes over the connection on which outcomes go, and all of a task's before its outcome does.
 * Redis answers one connection's commands in order: who has seen the result finds the output whole.
 */
#ifndef LEAT_DAEMON_REPORT_LIVE_H
#define LEAT_DAEMON_REPORT_LIVE_H

#include "daemon/session/session.h"
#include "exec/runner.h"

struct ev_loop;
struct live;

/* Follows the runner's tasks from now on. Everything must outlive it; consumer is the worker's
 * name. Returns NULL without memory. */
struct live *live_new(struct ev_loop *loop, struct session *session, struct runner *runner,
                      const struct queue *queue, const char *consumer);
void live_free(struct live *live);

/* The attempt is over, and this becomes of it. To be called before anybody is told. */
void live_ended(struct live *live, struct attempt *attempt, const struct outcome *outcome);

/* Before outcomes are sent: what is left of ended attempts goes out. */
void live_flush(struct live *live);

/* The session is down: what was not answered goes again with the next. */
void live_down(struct live *live);

#endif
