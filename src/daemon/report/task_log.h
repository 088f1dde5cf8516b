/*
 * Journal records about tasks. Those of which anyone who may add tasks can cause any number are
 * limited by `refusals`.
 */
#ifndef LEAT_DAEMON_REPORT_TASK_LOG_H
#define LEAT_DAEMON_REPORT_TASK_LOG_H

#include "daemon/report/outcomes.h"
#include "daemon/report/refusals.h"
#include "exec/runner.h"

/* A started attempt, if the log level includes it. */
void task_log_started(const struct task *task);

/* An ended attempt and its outcome. */
void task_log_ended(struct refusals *refusals, const struct attempt *attempt,
                    const struct outcome *outcome);

/* The process of a batch has failed, and `count` of its tasks run again in halves; see struct
 * runner_events. */
void task_log_halved(const struct attempt *attempt, size_t count);

/* The task did not get what it asked for; what: "its timeout is above … : lowered". */
void task_log_lowered(struct refusals *refusals, const struct task *task, const char *what);

/* A process was killed but has not ended; see struct runner_events. */
void task_log_stuck(void *context, const struct attempt *attempt, pid_t pid);

/* A resident process has failed. pid: 0 if it has none. */
void task_log_resident(pid_t pid, const char *text);

/* Tasks start in / instead of their home; see struct runner_events. */
void task_log_home_inaccessible(void *context, const char *home, int error);

/* A task that was cancelled before it started here. */
void task_log_cancelled(const char *tid);

/* Tasks that a claim or a renewal dead-lettered, or that a claim found cancelled, without an
 * outcome of this worker. ended: tid, cause, …; reasons: why, of each; NULL: unknown. */
void task_log_ended_by_call(struct refusals *refusals, const struct redisReply *ended,
                            const struct redisReply *reasons);

/* The queue's dead letters have grown to this number. */
void task_log_dead_growth(const char *queue, int64_t letters);

/* The dead-letter hook has ended. run: it is not run again; otherwise another worker runs it. */
void task_log_hook_ended(const struct attempt *attempt, bool run);

/* given_up: tids of dead letters for which the hook never finished. */
void task_log_hook_given_up(const struct redisReply *given_up);

/* Redis did not take an outcome as it was sent. */
void task_log_settled(const struct pending_outcome *pending, enum queue_settled settled,
                      const char *error);

#endif
