/*
 * The events that a runner (exec/runner.h) tells its owner.
 */
#ifndef LEAT_EXEC_RUNNER_EVENTS_H
#define LEAT_EXEC_RUNNER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "exec/attempt/attempt.h"

struct runner_events {
    /* Nothing of the attempt is left, and the receiver owns it now. Attempts of a batch are
     * reported one after the other. runner_start calls it only for a failed start (CAUSE_HOST,
     * CAUSE_NO_PROGRAM, CAUSE_CANNOT_EXECUTE, CAUSE_REFUSED). */
    void (*ended)(void *context, struct attempt *attempt);
    /* The process of a batch has failed as a whole, and `count` of its tasks run again in halves,
     * in the same attempt and slot; `ended` is called when they are over. The attempt says how the
     * process ended, and has no task. May be NULL. */
    void (*halved)(void *context, const struct attempt *attempt, size_t count);
    /* The attempt was killed a while ago, but its process pid has not died; 0: the pid is unknown.
     * Called once, for the first attempt of a batch. May be NULL. */
    void (*stuck)(void *context, const struct attempt *attempt, pid_t pid);
    /* A resident process has failed, or cannot be started (host: this host cannot run tasks). pid
     * may be 0. May be NULL. */
    void (*resident)(void *context, bool host, pid_t pid, const char *text);
    /* The tasks' user cannot enter its home, so its tasks start in /. error is the errno. Called
     * once for each config. May be NULL. */
    void (*homeless)(void *context, const char *home, int error);
    void *context;
};

#endif
