/*
 * The log's records of what becomes of tasks.
 */
#ifndef LEAT_DAEMON_RECORD_H
#define LEAT_DAEMON_RECORD_H

#include "daemon/results.h"
#include "exec/runner.h"

/* A started attempt, where the config wants such records. */
void record_started(const struct task *task);

/* An ended attempt and its outcome. */
void record_ended(const struct attempt *attempt, const struct outcome *outcome);

/* What was killed and does not end, see struct runner_events. */
void record_lingers(void *context, const struct attempt *attempt, pid_t pid);

/* A task that ended before it was started here, since somebody had cancelled it. */
void record_cancelled(const char *tid);

/* Tasks that a claim ended, where no attempt of this worker did: tid, cause, … */
void record_buried(const struct redisReply *buried);

/* So many dead letters have gathered in the queue. */
void record_dead_growth(const char *queue, int64_t letters);

/* [dead] notify has ended for a letter; run: it is done with, else another worker runs it. */
void record_told(const struct attempt *attempt, bool run);

/* tids of letters of which nobody could be told. */
void record_untold(const struct redisReply *given_up);

/* Redis did not take a result as it was meant. */
void record_settled(const struct result *result, enum queue_settled settled, const char *error);

#endif
