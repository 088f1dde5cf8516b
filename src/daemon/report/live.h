/*
 * Live output: sends what tasks write to Redis while they run, if they ask for it or somebody
 * follows them, in bounded memory and at a bounded rate. A task that writes faster than Redis takes
 * it blocks, as on a slow terminal. If Redis takes nothing for a while, output is dropped instead,
 * and the stream says how much.
 *
 * Live output and outcomes use one connection, and a task's output is sent before its outcome.
 * Redis answers one connection's commands in order, so a client that sees the result finds the
 * output complete.
 */
#ifndef LEAT_DAEMON_REPORT_LIVE_H
#define LEAT_DAEMON_REPORT_LIVE_H

#include "daemon/session/session.h"
#include "exec/runner.h"

struct live;

/* Follows the tasks of the runner, which must outlive the object, from now on. Returns NULL without
 * memory. */
struct live *live_new(struct worker_context *worker, struct runner *runner);
void live_free(struct live *live);

/* Somebody follows the task for so long from now on, here or at another worker. If it runs here,
 * its output is sent, and before it the end of what it has written so far. */
void live_follow(struct live *live, const char *tid, int64_t for_ms);

/* The attempt has ended with this outcome. Call it before the outcome is sent. */
void live_ended(struct live *live, struct attempt *attempt, const struct outcome *outcome);

/* Sends all output of ended attempts. Call it before outcomes are sent. */
void live_flush(struct live *live);

/* The session is down: unanswered chunks are sent again in the next session. */
void live_down(struct live *live);

#endif
