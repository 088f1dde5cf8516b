/*
 * Writes the journal records about tasks: their starts, ends, dead letters and lost outcomes.
 */
#include "daemon/report/task_log.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/units.h"
#include "queue/replies.h"
#include "redis/value.h"

#define FIELDS_MOST 15

/* The fields of one record, with buffers for numbers. */
struct fields {
    struct log_field list[FIELDS_MOST];
    size_t count;
    char attempt[UNITS_INTEGER_SIZE], status[UNITS_INTEGER_SIZE], duration[UNITS_INTEGER_SIZE];
    char used[USAGE_ITEMS][UNITS_INTEGER_SIZE];
};

static void add_field(struct fields *fields, const char *name, const char *text)
{
    fields->list[fields->count++] = LOG_TEXT(name, text);
}

static void add_number(struct fields *fields, const char *name, char *text, int64_t number)
{
    size_t size = units_format_integer(number, text);
    fields->list[fields->count++] = (struct log_field){.name = name, .data = text, .size = size};
}

static void describe_task(struct fields *fields, const struct task *task, const char *event)
{
    fields->count = 0;
    add_field(fields, "LEAT_TASK", task->tid);
    add_number(fields, "LEAT_ATTEMPT", fields->attempt, task->attempt);
    if (task->label) {
        fields->list[fields->count++] = (struct log_field){
            .name = "LEAT_ID", .data = task->label->data, .size = task->label->size};
    }
    add_field(fields, "LEAT_EVENT", event);
    fields->count += trace_log_field(&task->trace, &fields->list[fields->count]);
}

void task_log_started(const struct task *task)
{
    if (!log_wants(LOG_INFO)) {
        return;
    }
    struct fields fields;
    describe_task(&fields, task, "started");
    log_event(LOG_INFO, LOG_ID_TASK_STARTED, fields.list, fields.count,
              "task %s: attempt %" PRId64 " started", task->tid, task->attempt);
}

/* The journal record of each verdict. */
static const struct {
    int priority;
    const char *verb, *id, *event;
} verdict_records[] = {
    [VERDICT_SUCCESS] = {LOG_INFO, "succeeded", LOG_ID_TASK_SUCCEEDED, "succeeded"},
    [VERDICT_RETRY] = {LOG_WARNING, "failed", LOG_ID_TASK_RETRY, "retry"},
    [VERDICT_DEAD] = {LOG_ERR, "failed", LOG_ID_TASK_DEAD, "dead"},
    [VERDICT_RELEASE] = {LOG_NOTICE, "released", LOG_ID_TASK_RELEASED, "released"},
    [VERDICT_CANCELLED] = {LOG_NOTICE, "ended", LOG_ID_TASK_CANCELLED, "cancelled"},
};

/* Returns what becomes of the task, with a leading semicolon; text: a buffer for it. */
static const char *describe_outcome(const struct outcome *outcome, bool done, char *text,
                                    size_t size)
{
    switch (outcome->verdict) {
    case VERDICT_SUCCESS:
        return done ? "; not run" : "";
    case VERDICT_RETRY:
        (void)snprintf(text, size, "; retrying in %.1f s", (double)outcome->delay_ms / 1000);
        return text;
    case VERDICT_DEAD:
        return "; dead-lettered";
    case VERDICT_RELEASE:
        if (outcome->delay_ms == 0) {
            return "; returned to the queue";
        }
        (void)snprintf(text, size, "; returned to the queue for %.1f s or more",
                       (double)outcome->delay_ms / 1000);
        return text;
    case VERDICT_CANCELLED:
        return "";
    }
    return "";
}

/* Adds the values that are known. */
static void add_usage(struct fields *fields, const struct usage *usage)
{
    static const char *const names[USAGE_ITEMS] = {
        [USAGE_CPU_US] = "LEAT_CPU_USEC",         [USAGE_MAX_RSS] = "LEAT_MAX_RSS",
        [USAGE_MEMORY_PEAK] = "LEAT_MEMORY_PEAK", [USAGE_OOM_KILLS] = "LEAT_OOM_KILLS",
        [USAGE_IO_READ] = "LEAT_IO_READ",         [USAGE_IO_WRITTEN] = "LEAT_IO_WRITTEN",
    };
    for (size_t i = 0; i < USAGE_ITEMS; i++) {
        if (usage->items[i] >= 0) {
            add_number(fields, names[i], fields->used[i], usage->items[i]);
        }
    }
}

/* Adds how the process ended and what it has used. */
static void add_ending(struct fields *fields, const struct attempt *attempt)
{
    if (*attempt->batch) {
        add_field(fields, "LEAT_BATCH_ID", attempt->batch);
    }
    if (attempt->ending.cause == CAUSE_EXIT) {
        add_number(fields, "LEAT_EXIT_STATUS", fields->status, attempt->ending.exit_code);
    }
    add_number(fields, "LEAT_DURATION_USEC", fields->duration, attempt->duration_us);
    add_usage(fields, &attempt->usage);
}

void task_log_halved(const struct attempt *attempt, size_t count)
{
    if (!log_wants(LOG_WARNING)) {
        return;
    }
    struct fields fields = {.count = 0};
    char how[64], took[UNITS_SECONDS_SIZE];
    add_field(&fields, "LEAT_EVENT", "halved");
    add_field(&fields, "LEAT_CAUSE", cause_name(attempt->ending.cause));
    add_ending(&fields, attempt);
    ending_describe(&attempt->ending, how, sizeof how);
    units_format_seconds(attempt->duration_us / 1000, took);
    log_event(LOG_WARNING, NULL, fields.list, fields.count,
              "batch %s: failed: %s%s%s after %s s; running %zu of its tasks again%s",
              attempt->batch, how, *attempt->reason ? ", " : "", attempt->reason, took, count,
              count > 1 ? " in halves" : "");
}

/* Whether the log says of this attempt alone that it has ended: see refusals.h. */
static bool is_logged_alone(struct refusals *refusals, const struct attempt *attempt,
                            const struct outcome *outcome)
{
    enum cause cause = attempt->ending.cause;
    if (outcome->verdict != VERDICT_DEAD ||
        (cause != CAUSE_REFUSED && cause != CAUSE_CANNOT_EXECUTE)) {
        return true;
    }
    char how[64];
    ending_describe(&attempt->ending, how, sizeof how);
    return refusals_note(refusals, REFUSAL_DEAD, attempt->task->tid,
                         *attempt->reason ? attempt->reason : how);
}

/* Writes "attempt 1/5 failed"; nothing was tried of a task that is refused. */
static void describe_attempt(const struct attempt *attempt, const struct outcome *outcome,
                             char *text, size_t size)
{
    enum cause cause = attempt->ending.cause;
    const char *verb = cause == CAUSE_LEASE_LOST ? "ended" : verdict_records[outcome->verdict].verb;
    if (cause == CAUSE_REFUSED) {
        (void)snprintf(text, size, "not started");
    } else if (outcome->max_attempts > 0) {
        (void)snprintf(text, size, "attempt %" PRId64 "/%" PRId64 " %s", attempt->task->attempt,
                       outcome->max_attempts, verb);
    } else {
        (void)snprintf(text, size, "attempt %" PRId64 " %s", attempt->task->attempt, verb);
    }
}

void task_log_ended(struct refusals *refusals, const struct attempt *attempt,
                    const struct outcome *outcome)
{
    int priority = verdict_records[outcome->verdict].priority;
    if (!log_wants(priority) || !is_logged_alone(refusals, attempt, outcome)) {
        return;
    }
    struct fields fields;
    const struct ending *ending = &attempt->ending;
    bool done = ending->cause == CAUSE_DONE;
    describe_task(&fields, attempt->task,
                  done ? "check-done" : verdict_records[outcome->verdict].event);
    add_field(&fields, "LEAT_CAUSE",
              outcome->verdict == VERDICT_SUCCESS && !done ? "success" : cause_name(ending->cause));
    add_ending(&fields, attempt);

    char what[96], how[64], took[UNITS_SECONDS_SIZE], then[64];
    bool ran = attempt->duration_us > 0, lost = ending->cause == CAUSE_LEASE_LOST;
    describe_attempt(attempt, outcome, what, sizeof what);
    ending_describe(ending, how, sizeof how);
    units_format_seconds(attempt->duration_us / 1000, took);
    log_event(priority, verdict_records[outcome->verdict].id, fields.list, fields.count,
              "task %s: %s: %s%s%s%s%s%s%s", attempt->task->tid, what, how,
              *attempt->reason ? ", " : "", attempt->reason, ran ? " after " : "", ran ? took : "",
              ran ? " s" : "", lost ? "" : describe_outcome(outcome, done, then, sizeof then));
}

void task_log_lowered(struct refusals *refusals, const struct task *task, const char *what)
{
    struct fields fields;
    if (refusals_note(refusals, REFUSAL_LOWERED, task->tid, what)) {
        describe_task(&fields, task, "lowered");
        log_event(LOG_NOTICE, LOG_ID_TASK_LOWERED, fields.list, fields.count, "task %s: %s",
                  task->tid, what);
    }
}

void task_log_stuck(void *context, const struct attempt *attempt, pid_t pid)
{
    (void)context;
    struct fields fields;
    char process[48] = "one of its processes";
    if (pid > 0) {
        (void)snprintf(process, sizeof process, "process %d", (int)pid);
    }
    describe_task(&fields, attempt->task, "lingers");
    log_event(LOG_ERR, LOG_ID_TASK_LINGERS, fields.list, fields.count,
              "task %s: killed, but %s has not ended; its slot stays taken, and leatd keeps "
              "killing it",
              attempt->task->tid, process);
}

void task_log_resident(pid_t pid, const char *text)
{
    char number[UNITS_INTEGER_SIZE];
    (void)units_format_integer(pid, number);
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "handler-failed"),
                                 LOG_TEXT("LEAT_HANDLER", number)};
    log_event(LOG_WARNING, NULL, fields, 2, "resident process %s: %s", number, text);
}

void task_log_home_inaccessible(void *context, const char *home, int error)
{
    (void)context;
    log_text(LOG_WARNING,
             "home %s: tasks cannot enter it and start in /: %s; make it accessible to their "
             "user, or set [task] directory",
             home, strerror(error));
}

void task_log_cancelled(const char *tid)
{
    struct log_field fields[] = {LOG_TEXT("LEAT_TASK", tid), LOG_TEXT("LEAT_EVENT", "cancelled"),
                                 LOG_TEXT("LEAT_CAUSE", "cancelled")};
    log_event(LOG_NOTICE, LOG_ID_TASK_CANCELLED, fields, 3, "task %s: not started: cancelled", tid);
}

/* A task that a claim or a renewal made a dead letter. */
static void log_dead_by_call(struct refusals *refusals, const char *tid, const char *cause,
                             const char *reason)
{
    /* somebody deleted the entry of a vanished task while it ran; a crash was an attempt, too */
    bool started = strcmp(cause, "vanished") == 0, ran = started || strcmp(cause, "crash") == 0;
    if (!ran && !refusals_note(refusals, REFUSAL_DEAD, tid, *reason ? reason : cause)) {
        return;
    }
    struct log_field fields[] = {LOG_TEXT("LEAT_TASK", tid), LOG_TEXT("LEAT_EVENT", "dead"),
                                 LOG_TEXT("LEAT_CAUSE", cause)};
    log_event(LOG_ERR, LOG_ID_TASK_DEAD, fields, 3, "task %s: %s%s%s%s; dead-lettered", tid,
              started ? "" : "not started: ", cause, *reason ? ": " : "", reason);
}

void task_log_ended_by_call(struct refusals *refusals, const struct redisReply *ended,
                            const struct redisReply *reasons)
{
    for (size_t i = 0; i + 1 < ended->elements; i += 2) {
        const char *tid = ended->element[i]->str, *cause = ended->element[i + 1]->str;
        if (strcmp(cause, "cancelled") == 0) {
            task_log_cancelled(tid);
            continue;
        }
        const struct redisReply *reason = value_at(reasons, i / 2);
        log_dead_by_call(refusals, tid, cause, value_is_text(reason) ? reason->str : "");
    }
}

void task_log_dead_growth(const char *queue, int64_t letters)
{
    char number[UNITS_INTEGER_SIZE];
    (void)units_format_integer(letters, number);
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "dead-growth"),
                                 LOG_TEXT("LEAT_COUNT", number)};
    log_event(LOG_WARNING, LOG_ID_DEAD_GROWN, fields, 2,
              "queue %s: %s dead letters; list them with: leat -q %s dead list", queue, number,
              queue);
}

void task_log_hook_ended(const struct attempt *attempt, bool run)
{
    const struct ending *ending = &attempt->ending;
    bool fine = ending->cause == CAUSE_EXIT && ending->exit_code == 0;
    int priority = fine ? LOG_INFO : LOG_WARNING;
    if (!log_wants(priority)) {
        return;
    }
    struct fields fields = {.count = 0};
    add_field(&fields, "LEAT_TASK", attempt->task->tid);
    add_field(&fields, "LEAT_EVENT", fine ? "notified" : "notify-failed");
    add_number(&fields, "LEAT_DURATION_USEC", fields.duration, attempt->duration_us);
    fields.count += trace_log_field(&attempt->task->trace, &fields.list[fields.count]);
    char how[64];
    ending_describe(ending, how, sizeof how);
    log_event(priority, fine ? LOG_ID_NOTIFIED : LOG_ID_NOTIFY_FAILED, fields.list, fields.count,
              "task %s: dead-letter hook %s: %s%s%s after %.3f s%s", attempt->task->tid,
              fine ? "succeeded" : "failed", how, *attempt->reason ? ", " : "", attempt->reason,
              (double)attempt->duration_us / 1e6,
              fine  ? ""
              : run ? "; not retried"
                    : "; left to another worker");
}

void task_log_hook_given_up(const struct redisReply *given_up)
{
    for (size_t i = 0; i < given_up->elements; i++) {
        const char *tid = given_up->element[i]->str;
        struct log_field fields[] = {LOG_TEXT("LEAT_TASK", tid),
                                     LOG_TEXT("LEAT_EVENT", "notify-failed")};
        log_event(LOG_ERR, LOG_ID_NOTIFY_FAILED, fields, 2,
                  "task %s: dead-letter hook given up: it was started too often and never finished",
                  tid);
    }
}

void task_log_settled(const struct pending_outcome *pending, enum queue_settled settled,
                      const char *error)
{
    static const struct {
        int priority;
        const char *text, *id, *event;
    } records[] = {
        [QUEUE_OK] = {0}, /* logs nothing */
        [QUEUE_CALLED_OFF] = {LOG_NOTICE, "cancelled meanwhile; not retried", LOG_ID_TASK_CANCELLED,
                              "cancelled"},
        [QUEUE_FENCED] = {LOG_WARNING, "outcome rejected: the task was requeued meanwhile",
                          LOG_ID_FENCED, "fenced"},
        [QUEUE_GONE] =
            {LOG_WARNING,
             "outcome rejected: the entry is gone: the task was deleted, requeued or ended",
             LOG_ID_FENCED, "fenced"},
        [QUEUE_VANISHED] = {LOG_WARNING, "entry deleted or trimmed while it ran", LOG_ID_FENCED,
                            "vanished"},
        [QUEUE_KEPT] = {LOG_ERR, "Redis refuses its outcome", LOG_ID_REDIS_DOWN, "kept"},
    };
    const struct attempt *attempt = pending->attempt;
    bool settled_before = settled == QUEUE_GONE && pending->again;
    if (!records[settled].event || settled_before || !attempt) {
        return;
    }
    struct fields fields;
    describe_task(&fields, attempt->task, records[settled].event);
    log_event(records[settled].priority, records[settled].id, fields.list, fields.count,
              "task %s: %s%s%s%s", attempt->task->tid, records[settled].text, error ? ": " : "",
              error ? error : "", error ? "; keeping it and retrying" : "");
}
