/*
 * Explains a task: where it is, what it waits for, or how it ended.
 */
#include "view/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "config/config.h"
#include "view/explain_queue.h"
#include "view/explain_workers.h"
#include "view/history.h"
#include "view/reasons.h"

enum { ROW = 6, HISTORY = 7 }; /* elements of the reply */

static int64_t figure(const struct explanation *explanation, const char *name)
{
    return status_figure(&explanation->status, name);
}

static bool is_state(const struct explanation *explanation, const char *state)
{
    return bytes_equal(fields_bytes(explanation->row, "state"), state);
}

/* ---- how it ended */

/* "exit 3", "timeout", … */
static void add_cause(struct explain_reason *reason, struct bytes cause, struct bytes status)
{
    reasons_bytes(reason, cause);
    reasons_put_text(reason, "cause", cause);
    if (status.size > 0 && !bytes_equal(status, "-")) {
        reasons_printf(reason, " ");
        reasons_bytes(reason, status);
        reasons_put_text(reason, "status", status);
    }
}

static void explain_attempts(struct explanation *explanation)
{
    struct history_line line;
    size_t at = 0;

    while (history_next(explanation->history, &at, &line)) {
        struct explain_reason *reason =
            reasons_add(explanation, "attempt", false, "attempt %lld on ", (long long)line.attempt);
        reasons_bytes(reason, line.worker);
        reasons_printf(reason, " began ");
        reasons_time(reason, line.begun_ms, explanation->status.now_ms);
        reasons_printf(reason, " and ended after ");
        reasons_span(reason, line.ended_ms - line.begun_ms);
        reasons_printf(reason, ": ");
        reasons_put_number(reason, "attempt", line.attempt);
        add_cause(reason, line.cause, line.status);
        reasons_put_number(reason, "ended_ms", line.ended_ms);
    }
}

/* Adds the text for people, if there is one, such as "moved to mails as 1769860800000-0". */
static void add_why(struct explain_reason *reason, struct bytes why)
{
    if (why.size > 0) {
        reasons_printf(reason, ": ");
        reasons_bytes(reason, why);
    }
}

static void explain_dead(struct explanation *explanation)
{
    const struct redisReply *row = explanation->row;
    struct explain_reason *reason =
        reasons_add(explanation, "dead", true, "it became a dead letter ");

    explanation->verdict = EXPLAIN_DEAD;
    reasons_time(reason, fields_number(row, "died_ms", 0), explanation->status.now_ms);
    reasons_printf(reason, ": ");
    add_cause(reason, fields_bytes(row, "cause"), fields_bytes(row, "status"));
    add_why(reason, fields_bytes(row, "reason"));
    reasons_put_number(reason, "died_ms", fields_number(row, "died_ms", 0));
    reasons_printf(reason, "; to run it again: leat dead retry ");
    reasons_bytes(reason, fields_bytes(row, "tid"));
}

/* A task that is in the queue no more, by its result or its record in the history. */
static void explain_end(struct explanation *explanation, const struct redisReply *result,
                        struct bytes state, int64_t ended_ms, int64_t attempt)
{
    bool succeeded = bytes_equal(state, "success") || bytes_equal(state, "succeeded");
    bool cancelled = bytes_equal(state, "cancelled");
    const char *name = succeeded ? "succeeded" : cancelled ? "cancelled" : "dead";
    struct explain_reason *reason =
        reasons_add(explanation, name, !succeeded, succeeded ? "it succeeded " : "it ended ");

    explanation->verdict = succeeded   ? EXPLAIN_SUCCEEDED
                           : cancelled ? EXPLAIN_CANCELLED
                                       : EXPLAIN_DEAD;
    reasons_time(reason, ended_ms, explanation->status.now_ms);
    reasons_put_number(reason, "ended_ms", ended_ms);
    if (fields_bytes(result, "worker").size > 0) {
        reasons_printf(reason, " on ");
        reasons_bytes(reason, fields_bytes(result, "worker"));
        reasons_printf(reason, ", attempt %lld", (long long)attempt);
        reasons_put_text(reason, "worker", fields_bytes(result, "worker"));
        reasons_put_number(reason, "attempt", attempt);
    }
    if (!succeeded) {
        reasons_printf(reason, ": ");
        add_cause(reason, fields_bytes(result, "cause"), fields_bytes(result, "status"));
        add_why(reason, fields_bytes(result, "reason"));
    }
}

static void explain_gone(struct explanation *explanation)
{
    const struct redisReply *result = fields_find(explanation->status.figures, "result");

    explanation->verdict = EXPLAIN_UNKNOWN;
    if (result) {
        explain_end(explanation, result, fields_bytes(result, "state"),
                    fields_number(result, "ended", 0), fields_number(result, "attempt", 0));
    } else if (figure(explanation, "is_indexed") == 0) {
        (void)reasons_add(explanation, "unknown", true,
                          "it was not found, but tasks of an older version are still being "
                          "indexed; leat show searches for it");
    } else {
        (void)reasons_add(
            explanation, "unknown", true,
            "it is not in the queue, and neither a result nor the history has it: it "
            "ended long ago, was dropped, or never came. leat logs may have its output");
    }
}

/* ---- a task that a worker has */

/* The worker's entry among the heartbeats, or NULL. */
static const struct status_worker *worker_of(const struct explanation *explanation,
                                             struct bytes consumer)
{
    const struct status *status = &explanation->status;

    for (size_t i = 0; i < status->worker_count; i++) {
        if (bytes_equal(consumer, status->workers[i].consumer)) {
            return &status->workers[i];
        }
    }
    return NULL;
}

/* A worker that is silent loses its tasks when their leases end, after an outage later. */
static void explain_lease(struct explanation *explanation, struct bytes consumer)
{
    const struct status_worker *worker = worker_of(explanation, consumer);
    int64_t left_ms = figure(explanation, "takeover_ms") - explanation->status.now_ms;
    struct explain_reason *reason;

    if (worker && worker->live) {
        return;
    }
    explanation->verdict = EXPLAIN_WILL_RUN;
    reason = reasons_add(explanation, "worker-lost", false, "worker ");
    reasons_bytes(reason, consumer);
    reasons_printf(reason, " is silent: another worker takes the task over ");
    reasons_printf(reason, left_ms > 0 ? "in " : "now, since its lease has ended");
    if (left_ms > 0) {
        reasons_span(reason, left_ms);
    }
    reasons_put_text(reason, "worker", consumer);
    reasons_put_number(reason, "takeover_ms", figure(explanation, "takeover_ms"));
}

static void explain_running(struct explanation *explanation)
{
    const struct redisReply *row = explanation->row;
    struct bytes worker = fields_bytes(row, "worker");
    int64_t attempt = fields_number(row, "attempt", 1),
            begun_ms = fields_number(row, "begun_ms", 0);
    struct explain_reason *reason =
        reasons_add(explanation, "running", false, "attempt %lld began ", (long long)attempt);

    explanation->verdict = EXPLAIN_RUNS;
    reasons_time(reason, begun_ms, explanation->status.now_ms);
    reasons_printf(reason, " on ");
    reasons_bytes(reason, worker);
    reasons_put_number(reason, "attempt", attempt);
    reasons_put_number(reason, "begun_ms", begun_ms);
    reasons_put_text(reason, "worker", worker);
    if (figure(explanation, "is_cancelled") > 0) {
        (void)reasons_add(explanation, "cancel-asked", false,
                          "somebody has asked to cancel it: it ends when the worker learns of it");
    }
    explain_lease(explanation, worker);
    if (explanation->verdict == EXPLAIN_WILL_RUN) {
        explain_workers(explanation);
    }
}

/* ---- a task that waits */

static void explain_due(struct explanation *explanation)
{
    int64_t due_ms = fields_number(explanation->row, "due_ms", 0);
    int64_t waits = figure(explanation, "waits");
    bool retrying = is_state(explanation, "retrying");
    struct explain_reason *reason;

    if (due_ms <= explanation->status.now_ms) {
        return;
    }
    if (waits > 0) {
        reason = reasons_add(explanation, "no-program", false,
                             "a worker that claimed it could not run it, since something is "
                             "missing on its host (tries: %lld; see leat logs): it is tried again ",
                             (long long)waits);
        reasons_put_number(reason, "tries", waits);
    } else if (retrying) {
        reason = reasons_add(explanation, "retry", false, "it failed: attempt %lld is due ",
                             (long long)fields_number(explanation->row, "attempts", 0) + 1);
    } else {
        reason = reasons_add(explanation, "due", false, "it is due ");
    }
    reasons_time(reason, due_ms, explanation->status.now_ms);
    reasons_put_number(reason, "due_ms", due_ms);
}

static void explain_expiry(struct explanation *explanation)
{
    int64_t expires_ms = figure(explanation, "expires_ms"), now_ms = explanation->status.now_ms;
    bool is_late = expires_ms <= now_ms;
    bool blocks = is_late || fields_number(explanation->row, "due_ms", 0) >= expires_ms;
    struct explain_reason *reason;

    if (expires_ms == 0) {
        return;
    }
    reason = reasons_add(explanation, "expiry", blocks,
                         is_late  ? "it expired "
                         : blocks ? "it never starts, since it expires before it is due: "
                                  : "it starts only before it expires ");
    reasons_time(reason, expires_ms, now_ms);
    reasons_put_number(reason, "expires_ms", expires_ms);
}

static void explain_unique(struct explanation *explanation)
{
    struct bytes holder = fields_bytes(explanation->status.figures, "holder");
    struct bytes worker = fields_bytes(explanation->status.figures, "holder_worker");
    struct bytes key = fields_bytes(explanation->row, "unique");
    int64_t until_ms = figure(explanation, "holder_until_ms");
    bool follows = is_state(explanation, "following");
    struct explain_reason *reason;

    if (holder.size == 0) {
        return;
    }
    reason = reasons_add(explanation, follows ? "unique" : "unique-taken", !follows, "%s",
                         follows ? "it waits for the end of " : "it will be refused: ");
    reasons_bytes(reason, holder);
    reasons_printf(reason, until_ms > 0 ? " succeeded with the unique key "
                           : follows    ? ", which holds the unique key "
                                        : " holds the unique key ");
    reasons_bytes(reason, key);
    if (until_ms > 0) {
        reasons_printf(reason, ", which is refused until ");
        reasons_time(reason, until_ms, explanation->status.now_ms);
        reasons_put_number(reason, "until_ms", until_ms);
    } else if (worker.size > 0) {
        reasons_printf(reason, ", and runs on ");
        reasons_bytes(reason, worker);
    }
    reasons_put_text(reason, "key", key);
    reasons_put_text(reason, "holder", holder);
    if (worker.size > 0) {
        reasons_put_text(reason, "worker", worker);
    }
}

/* A task that was lost with a worker starts carefully. */
static void explain_candidate(struct explanation *explanation)
{
    const struct redisReply *figures = explanation->status.figures;
    const struct redisReply *others = fields_find(figures, "candidates");
    int64_t postponed_ms = figure(explanation, "postponed_ms");
    int64_t crashes = fields_number(explanation->row, "crashes", 0);
    struct explain_reason *reason;

    if (postponed_ms > 0) {
        reason = reasons_add(explanation, "postponed", false,
                             "its worker was lost while it ran (crashes: %lld), and a worker runs "
                             "one such task at a time: it waits for the end of another one",
                             (long long)crashes);
        reasons_put_number(reason, "since_ms", postponed_ms);
    } else if (figure(explanation, "is_alone") > 0) {
        reason = reasons_add(explanation, "alone", false,
                             "its worker was lost while it ran (crashes: %lld), and the next crash "
                             "would be the last: it starts only on a worker that runs nothing else",
                             (long long)crashes);
        if (fields_bytes(figures, "pending_for").size > 0) {
            reasons_printf(reason, "; worker ");
            reasons_bytes(reason, fields_bytes(figures, "pending_for"));
            reasons_printf(reason, " keeps it until then");
            reasons_put_text(reason, "worker", fields_bytes(figures, "pending_for"));
        }
    } else {
        return;
    }
    reasons_put_number(reason, "crashes", crashes);
    if (fields_count(others) > 0) {
        reasons_printf(reason, "; such tasks run now: ");
        reasons_tasks(reason, others);
    }
}

/* The task is one that leat_claim would refuse, or that nobody can read. */
static void explain_refusal(struct explanation *explanation)
{
    struct bytes refusal = fields_bytes(explanation->status.figures, "refusal");
    struct explain_reason *reason;

    if (is_state(explanation, "damaged")) {
        (void)reasons_add(explanation, "damaged", true,
                          "its stored fields cannot be read; run: leat doctor");
    } else if (refusal.size > 0) {
        reason = reasons_add(explanation, "refused", true, "the next worker will refuse it: ");
        reasons_bytes(reason, refusal);
        reasons_put_text(reason, "refusal", refusal);
    }
}

/* A worker has read the entry, and has not claimed it. One that runs alone is deferred. */
static void explain_claimed(struct explanation *explanation)
{
    struct bytes worker = fields_bytes(explanation->status.figures, "pending_for");
    struct explain_reason *reason;

    if (worker.size == 0 || figure(explanation, "is_alone") > 0) {
        return;
    }
    reason = reasons_add(explanation, "read", false, "worker ");
    reasons_bytes(reason, worker);
    reasons_printf(reason, " has read it");
    reasons_put_text(reason, "worker", worker);
    explain_lease(explanation, worker);
}

static void explain_ready(struct explanation *explanation)
{
    int64_t ready = figure(explanation, "ready");
    struct explain_reason *reason = reasons_add(explanation, "ready", false, "it is ready");

    if (ready > 1) {
        reasons_printf(reason, ", one of %lld tasks", (long long)ready);
    }
    reasons_put_number(reason, "ready", ready);
}

static void explain_waiting(struct explanation *explanation)
{
    explanation->verdict = EXPLAIN_WILL_RUN;
    explain_refusal(explanation);
    explain_due(explanation);
    explain_expiry(explanation);
    explain_unique(explanation);
    explain_candidate(explanation);
    explain_claimed(explanation);
    if (is_state(explanation, "ready")) {
        explain_ready(explanation);
    }
    explain_lane(explanation);
    explain_queue(explanation);
    explain_workers(explanation);
}

static void explain_task(struct explanation *explanation)
{
    if (fields_count(explanation->row) == 0) {
        explain_gone(explanation);
    } else if (is_state(explanation, "dead")) {
        explain_dead(explanation);
    } else if (is_state(explanation, "running")) {
        explain_running(explanation);
    } else {
        explain_waiting(explanation);
    }
    explain_attempts(explanation);
}

/* ---- a lane or a queue */

static void explain_one_lane(struct explanation *explanation)
{
    int64_t waiting = figure(explanation, "lane_waiting"),
            running = figure(explanation, "lane_running");
    bool has_name = fields_bytes(explanation->status.figures, "lane").size > 0;

    if (has_name && waiting == 0 && running == 0 && figure(explanation, "is_named") == 0) {
        explanation->verdict = EXPLAIN_UNKNOWN;
        (void)reasons_add(explanation, "unknown", true,
                          "no task is ready or runs in this lane, and it has no settings; a task "
                          "that is delayed or retried enters its lane when it is due");
        return;
    }
    explanation->verdict = EXPLAIN_OPEN;
    if (waiting == 0 && has_name) {
        (void)reasons_add(explanation, "empty", false, "no task waits in it, and %lld run",
                          (long long)running);
    } else if (waiting == 0) {
        (void)reasons_add(explanation, "empty", false, "none of them waits like those of a lane");
    }
    explain_lane(explanation);
    explain_queue(explanation);
    explain_workers(explanation);
}

static void explain_whole_queue(struct explanation *explanation)
{
    int64_t ready = figure(explanation, "ready"), running = figure(explanation, "running");
    int64_t waiting = figure(explanation, "waiting"), due_ms = figure(explanation, "next_due_ms");
    struct explain_reason *reason =
        reasons_add(explanation, "tasks", false, "tasks: %lld ready, %lld running, %lld waiting",
                    (long long)ready, (long long)running, (long long)waiting);

    explanation->verdict = EXPLAIN_OPEN;
    reasons_put_number(reason, "ready", ready);
    reasons_put_number(reason, "running", running);
    reasons_put_number(reason, "waiting", waiting);
    if (due_ms > explanation->status.now_ms) {
        reasons_printf(reason, "; the next is due ");
        reasons_time(reason, due_ms, explanation->status.now_ms);
        reasons_put_number(reason, "due_ms", due_ms);
    }
    explain_queue(explanation);
    explain_workers(explanation);
}

/* ---- all of it */

/* A stable sort: reasons that block come first. */
static void put_blocking_first(struct explanation *explanation)
{
    size_t front = 0;

    for (size_t i = 0; i < explanation->count; i++) {
        struct explain_reason reason = explanation->reasons[i];
        if (reason.blocks) {
            memmove(&explanation->reasons[front + 1], &explanation->reasons[front],
                    (i - front) * sizeof reason);
            explanation->reasons[front++] = reason;
        }
    }
    if (front > 0 && explanation->verdict <= EXPLAIN_OPEN) {
        explanation->verdict = EXPLAIN_BLOCKED;
    }
}

int explain_read(const struct redisReply *reply, enum explain_subject subject,
                 const struct config_queue *queue, struct explanation *explanation)
{
    static void (*const explain[])(struct explanation *) = {
        [EXPLAIN_TASK] = explain_task,
        [EXPLAIN_LANE] = explain_one_lane,
        [EXPLAIN_QUEUE] = explain_whole_queue,
    };
    bool failed = false;

    *explanation = (struct explanation){.queue = queue,
                                        .row = reply->element[ROW],
                                        .history = fields_value(reply->element[HISTORY])};
    explanation->reasons = calloc(EXPLAIN_REASONS + 1, sizeof *explanation->reasons);
    if (!explanation->reasons || status_read(reply, queue->lease_ms, &explanation->status) != 0) {
        return -1;
    }
    explain[subject](explanation);
    put_blocking_first(explanation);
    for (size_t i = 0; i < explanation->count; i++) {
        failed |= explanation->reasons[i].text.failed;
    }
    return failed ? -1 : 0;
}

void explain_by_history(struct explanation *explanation, const struct redisReply *row)
{
    struct bytes outcome = fields_bytes(row, "outcome");
    /* the history counts attempts, but not one that was cancelled */
    int64_t last = fields_number(row, "attempts", 0) + (bytes_equal(outcome, "cancelled") ? 1 : 0);

    for (size_t i = 0; i < explanation->count; i++) {
        buffer_free(&explanation->reasons[i].text);
        explanation->reasons[i] = (struct explain_reason){0};
    }
    explanation->count = 0;
    explanation->row = row;
    explain_end(explanation, row, outcome, fields_number(row, "ended_ms", 0), last);
}

void explain_free(struct explanation *explanation)
{
    for (size_t i = 0; explanation->reasons && i <= EXPLAIN_REASONS; i++) {
        buffer_free(&explanation->reasons[i].text);
    }
    free(explanation->reasons);
    status_free(&explanation->status);
    *explanation = (struct explanation){0};
}

const char *explain_verdict_name(enum explain_verdict verdict)
{
    static const char *const names[] = {
        [EXPLAIN_RUNS] = "runs",           [EXPLAIN_WILL_RUN] = "will-run",
        [EXPLAIN_OPEN] = "open",           [EXPLAIN_BLOCKED] = "blocked",
        [EXPLAIN_SUCCEEDED] = "succeeded", [EXPLAIN_CANCELLED] = "cancelled",
        [EXPLAIN_DEAD] = "dead",           [EXPLAIN_UNKNOWN] = "unknown",
    };
    return names[verdict];
}
