/*
 * Finds the cause of an attempt's end from exit status, reports, guards, checks, output and usage.
 */
#include "exec/attempt/child.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"

enum { CHECK_SAYS_DONE = 0, CHECK_SAYS_RUN = 1 };

/* Returns the cause for a signal that the daemon has not sent. A KILL after the end of the lease
 * comes from a guard or from a worker that has reclaimed the task. */
static enum cause signal_cause(const struct attempt *attempt, int signal)
{
    if (signal != SIGKILL) {
        return CAUSE_SIGNAL;
    }
    return attempt->lease_deadline_ns > 0 && clock_boot_ns() >= attempt->lease_deadline_ns
               ? CAUSE_LEASE_LOST
               : CAUSE_KILLED;
}

static void note_exit(struct attempt *attempt, const siginfo_t *exit, int64_t duration_us)
{
    struct ending *ending = &attempt->ending;
    attempt->duration_us = duration_us;
    if (exit->si_code == CLD_EXITED) {
        ending->exit_code = exit->si_status;
    } else {
        ending->signal = exit->si_status;
        if (ending->cause == CAUSE_EXIT) {
            ending->cause = signal_cause(attempt, exit->si_status);
        }
    }
}

static bool is_ended_by_us(const struct attempt *attempt)
{
    enum cause cause = attempt->ending.cause;
    return cause == CAUSE_LEASE_LOST || cause == CAUSE_SHUTDOWN || cause == CAUSE_BATCH ||
           cause == CAUSE_CANCELLED;
}

/* Returns true if a signal of an unknown sender has ended the child before it executed its program.
 * A guard kills it only if its start hangs. */
static bool is_start_killed(const struct child *child, const struct spawn_failure *failure)
{
    enum cause cause = child->attempt.ending.cause;
    return failure->error == 0 && (cause == CAUSE_SIGNAL || cause == CAUSE_KILLED) &&
           !child_guard_is_taken(child);
}

/* Judges a forked start. A child that did not execute its program was no attempt of the task,
 * unless somebody has killed it. */
static void judge_start(struct child *child)
{
    struct spawn_failure failure;
    const struct recipe *recipe = child->host->start.recipe;
    const struct task *task = child_task(child);
    if (child->report < 0) {
        return;
    }
    bool executed = spawn_report(child->report, &failure);
    child_note_home(child, failure.home_error);
    if (executed || is_start_killed(child, &failure)) {
        return;
    }
    for (size_t i = 0; i < child->count; i++) {
        struct attempt *attempt = child_attempt(child, i);
        if (!is_ended_by_us(attempt)) {
            attempt->ending.cause = start_failure_cause(recipe, child->checking, task, &failure);
            start_describe(recipe, child->checking, task, &failure, attempt->reason,
                           sizeof attempt->reason);
        }
    }
}

/* Judges a KILL by a guard, which kills what the daemon could neither renew nor end in time. */
static void judge_guard(struct child *child, const siginfo_t *exit)
{
    if (exit->si_code == CLD_EXITED || exit->si_status != SIGKILL || !child_guard_is_taken(child)) {
        return;
    }
    for (size_t i = 0; i < child->count; i++) {
        struct attempt *attempt = child_attempt(child, i);
        if (attempt->ending.cause == CAUSE_KILLED || attempt->ending.cause == CAUSE_LEASE_LOST) {
            attempt->ending.cause = CAUSE_LEASE_LOST;
            (void)snprintf(attempt->reason, sizeof attempt->reason, "killed by the guard");
        }
    }
}

/* A shell exits with 126 or 127 if it cannot execute a program. */
static bool is_not_executable(int code)
{
    return code == 126 || code == 127;
}

/* Judges a check. If the check failed, the attempt has failed. */
static enum job_event judge_check(struct attempt *attempt)
{
    struct ending *ending = &attempt->ending;
    int code = ending->exit_code;
    if (ending->cause == CAUSE_HOST || ending->cause == CAUSE_LEASE_LOST) {
        return JOB_EXITED;
    }
    if (ending->cause == CAUSE_EXIT && code == CHECK_SAYS_RUN) {
        return JOB_TO_RUN;
    }
    if (ending->cause == CAUSE_EXIT && code == CHECK_SAYS_DONE) {
        ending->cause = CAUSE_DONE;
    } else if (ending->cause == CAUSE_EXIT && is_not_executable(code)) {
        ending->cause = CAUSE_HOST;
        (void)snprintf(attempt->reason, sizeof attempt->reason,
                       "the configured check cannot be executed: exit %d", code);
    } else {
        ending_describe(ending, attempt->reason, sizeof attempt->reason);
        ending->cause = CAUSE_CHECK;
    }
    return JOB_EXITED;
}

enum job_event judge_exit(struct child *child, const siginfo_t *exit)
{
    struct attempt *attempt = &child->attempt;
    int64_t duration_us = (clock_boot_ns() - child->started_ns) / 1000;
    for (size_t i = 0; i < child->count; i++) {
        note_exit(child_attempt(child, i), exit, duration_us);
    }
    judge_start(child);
    judge_guard(child, exit);
    if (attempt->state == JOB_CHECKING) {
        return judge_check(attempt);
    }
    if (attempt->ending.cause == CAUSE_CHECK) {
        (void)snprintf(attempt->reason, sizeof attempt->reason, "timeout");
    }
    return JOB_EXITED;
}

/* A configured command that cannot be executed is a fault of the host, unless the config has a rule
 * for the exit code. */
static void judge_program(const struct config *config, struct attempt *attempt)
{
    struct ending *ending = &attempt->ending;
    int code = ending->exit_code;
    if (ending->cause == CAUSE_EXIT && config->task.command && is_not_executable(code) &&
        config->retry.exits.of[code].kind == CONFIG_RULE_NONE) {
        ending->cause = CAUSE_HOST;
        (void)snprintf(attempt->reason, sizeof attempt->reason,
                       "the configured command cannot be executed: exit %d", code);
    }
}

/* An attempt that wrote more than max_output has failed for that, even if the process ended before
 * it was stopped. */
static void judge_output(const struct outlet *outlet, struct attempt *attempt)
{
    if (!outlet->over || !outlet->kills) {
        return;
    }
    if (attempt->ending.cause == CAUSE_EXIT || attempt->ending.cause == CAUSE_SIGNAL) {
        attempt->ending.cause = CAUSE_OUTPUT_LIMIT;
    }
    if (attempt->ending.cause == CAUSE_OUTPUT_LIMIT) {
        (void)snprintf(attempt->reason, sizeof attempt->reason, "more than %" PRId64 " bytes",
                       outlet->limit);
    }
}

/* A task that needed a report has failed without one, unless something else has ended it. */
static void judge_silence(const struct child *child, struct attempt *attempt)
{
    if (child->needs_verdict && !child->resident) {
        judge_no_verdict(attempt);
    }
}

void judge_no_verdict(struct attempt *attempt)
{
    struct ending *ending = &attempt->ending;
    if (ending->cause == CAUSE_EXIT || ending->cause == CAUSE_SIGNAL ||
        ending->cause == CAUSE_KILLED) {
        ending_describe(ending, attempt->reason, sizeof attempt->reason);
        ending->cause = CAUSE_NO_VERDICT;
    }
}

void judge_verdict(struct attempt *attempt)
{
    struct ending *ending = &attempt->ending;
    if (attempt->verdict_code >= 0) {
        ending->cause = CAUSE_EXIT;
        ending->exit_code = attempt->verdict_code;
        ending->signal = 0;
    } else {
        ending->cause = CAUSE_REPORTED;
        ending->reported = attempt->verdict;
    }
}

void judge_end(struct child *child)
{
    for (size_t i = 0; i < child->count; i++) {
        struct attempt *attempt = child_attempt(child, i);
        if (attempt->has_verdict) {
            judge_verdict(attempt);
        } else if (child->resident && i > 0) {
            resident_judge(child, attempt);
        } else if (ending_lacked_memory(&child->host->config->retry, &attempt->ending,
                                        attempt->usage.items[USAGE_OOM_KILLS])) {
            attempt->ending.cause = CAUSE_OOM;
        } else {
            judge_program(child->host->config, attempt);
            judge_output(&child->streams.outlet, attempt);
            judge_silence(child, attempt);
        }
    }
}
