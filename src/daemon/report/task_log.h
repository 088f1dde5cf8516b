/*
 * The log's records of what becomes of tasks.
 */
#ifndef LEAT_DAEMON_REPORT_TASK_LOG_H
#define LEAT_DAEMON_REPORT_TASK_LOG_H

#include "daemon/report/outcomes.h"
#include "exec/runner.h"

/* A started attempt, where the config wants such records. */
void task_log_started(const struct task *task);

/* An ended attempt and its outcome. */
void task_log_ended(const struct attempt *attempt, const struct outcome *outcome);

/* What was killed and does not end, see struct runner_events. */
void task_log_stuck(void *context, const struct attempt *attempt, pid_t pid);

/* Tasks start in / instead of that home, see struct runner_events. */
void task_log_homeless(void *context, const char *home, int error);

/* A task that ended before it was started here, since somebody had cancelled it. */
void task_log_cancelled(const char *tid);

/* Tasks that a claim ended, where no attempt of this worker did: tid, cause, … */
void task_log_ended_by_claim(const struct redisReply *ended);

/* So many dead letters have gathered in the queue. */
void task_log_dead_growth(const char *queue, int64_t letters);

/* [dead] notify has ended for a letter; run: it is done with, else another worker runs it. */
void task_log_told(const struct attempt *attempt, bool run);

/* tids of letters of which nobody could be told. */
void task_log_untold(const struct redisReply *given_up);

/* Redis did not take a result as it was meant. */
void task_log_settled(const struct pending_outcome *result, enum queue_settled settled,
                      const char *error);

#endif
