/*
 * Sends outcomes to Redis in batches, keeps each until it is settled, and waits for replicas if the
 * config says so.
 */
#include "daemon/report/outcomes.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/timer.h"
#include "daemon/report/replicas.h"
#include "queue/calls.h"
#include "queue/replies.h"

#define KEPT_RETRY_S 1.0
#define COALESCE_MS 6

/* One leat_finish in flight: the outcomes that it names, in order. */
struct batch {
    struct outcomes *outcomes;
    struct pending_outcome_list sent;
};

struct outcomes {
    struct worker_context *worker;
    struct outcomes_events events;
    struct pending_outcome_list queued;
    struct pending_outcome_list kept; /* refused by Redis: sent again after KEPT_RETRY_S */
    struct replicas *replicas;
    struct pending_outcome_list asked;   /* settled by Redis; the replicas are being asked */
    struct pending_outcome_list unasked; /* settled by Redis; for the next question */
    struct pending_outcome_list spare;   /* reserved for attempts */
    struct buffer successes;             /* the records of those in the call that is built */
    size_t count, refused;
    int64_t sent_ns; /* when outcomes were last sent */
    struct timer retry;
    struct timer coalesce; /* ends the wait of outcomes_coalesce */
};

/* ---- sending and settling ---- */

static void end_batch(struct batch *batch)
{
    struct outcomes *outcomes = batch->outcomes;
    pending_outcome_list_put_back(&outcomes->queued, &batch->sent);
    free(batch);
}

/* Redis refused the outcome: keeps it, to be sent again later. */
static void keep(struct outcomes *outcomes, struct pending_outcome_list *from,
                 struct pending_outcome *pending, const char *error)
{
    pending_outcome_list_remove(from, pending);
    pending->again = true;
    outcomes->refused += !pending->refused;
    pending->refused = true;
    pending_outcome_list_append(&outcomes->kept, pending);
    if (!timer_runs(&outcomes->retry)) {
        timer_start_s(&outcomes->retry, KEPT_RETRY_S);
    }
    outcomes->events.settled(outcomes->events.context, pending, QUEUE_KEPT, error);
}

static void settle(struct outcomes *outcomes, struct pending_outcome_list *from,
                   struct pending_outcome *pending, enum queue_settled settled)
{
    pending_outcome_list_remove(from, pending);
    outcomes->count--;
    outcomes->refused -= pending->refused;
    outcomes->events.settled(outcomes->events.context, pending, settled, NULL);
    pending_outcome_free(pending);
}

/* ---- replicas ---- */

/* Asks once for all outcomes since the last question, unless one is under way. */
static void ask_replicas(struct outcomes *outcomes)
{
    if (outcomes->unasked.count == 0 || replicas_are_asked(outcomes->replicas)) {
        return;
    }
    if (replicas_ask(outcomes->replicas, outcomes->unasked.count)) {
        pending_outcome_list_put_back(&outcomes->queued, &outcomes->unasked);
        return;
    }
    while (outcomes->unasked.count > 0) {
        struct pending_outcome *first = TAILQ_FIRST(&outcomes->unasked.list);
        pending_outcome_list_remove(&outcomes->unasked, first);
        pending_outcome_list_append(&outcomes->asked, first);
    }
}

static void on_replicated(void *context, bool known)
{
    struct outcomes *outcomes = context;
    if (!known) {
        /* after a failover the new master may not have it */
        pending_outcome_list_put_back(&outcomes->queued, &outcomes->unasked);
        pending_outcome_list_put_back(&outcomes->queued, &outcomes->asked);
        return;
    }
    while (outcomes->asked.count > 0) {
        struct pending_outcome *pending = TAILQ_FIRST(&outcomes->asked.list);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): see pending_outcome_list_free */
        settle(outcomes, &outcomes->asked, pending, pending->settled);
    }
    ask_replicas(outcomes);
}

static void on_answer(struct outcomes *outcomes, struct pending_outcome_list *sent,
                      enum queue_settled settled, const char *error)
{
    struct pending_outcome *pending = TAILQ_FIRST(&sent->list);
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): see pending_outcome_list_free */
    if (settled == QUEUE_LATER) {
        pending_outcome_list_remove(sent, pending);
        pending_outcome_list_append(&outcomes->queued, pending);
    } else if (settled == QUEUE_KEPT) {
        keep(outcomes, sent, pending, error);
    } else if (replicas_are_wanted(outcomes->replicas)) {
        pending_outcome_list_remove(sent, pending);
        pending->settled = settled;
        pending_outcome_list_append(&outcomes->unasked, pending);
    } else {
        settle(outcomes, sent, pending, settled);
    }
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
}

static void on_finished(void *context, const struct redisReply *reply)
{
    struct batch *batch = context;
    struct outcomes *outcomes = batch->outcomes;
    bool usable = true;
    for (size_t i = 0; usable && batch->sent.count > 0; i++) {
        enum queue_settled settled;
        const char *error;
        int malformed = queue_finish_read(reply, i, &settled, &error);
        usable = session_check(outcomes->worker->session, reply, malformed, "finish");
        if (usable) {
            on_answer(outcomes, &batch->sent, settled, error);
        }
    }
    end_batch(batch);
    if (usable) {
        ask_replicas(outcomes);
    }
}

/* Returns whether a batch was sent. */
static bool send_batch(struct outcomes *outcomes)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch) {
        session_recover(outcomes->worker->session, REDIS_ERROR_LOST, "out of memory");
        return false;
    }
    batch->outcomes = outcomes;
    pending_outcome_list_init(&batch->sent);
    queue_finish_begin(&outcomes->worker->command, outcomes->worker->queue,
                       outcomes->worker->consumer);
    buffer_clear(&outcomes->successes);
    while (outcomes->queued.count > 0 && batch->sent.count < QUEUE_FINISH_MAX) {
        struct pending_outcome *pending = TAILQ_FIRST(&outcomes->queued.list);
        pending_outcome_list_remove(&outcomes->queued, pending);
        pending_outcome_list_append(&batch->sent, pending);
        pending_outcome_add_to(outcomes->worker, pending, &outcomes->successes);
    }
    if (outcomes->successes.size > 0 && !outcomes->successes.failed) {
        queue_finish_add_successes(&outcomes->worker->command, buffer_bytes(&outcomes->successes));
    }
    if (session_send(outcomes->worker->session, on_finished, batch)) {
        end_batch(batch);
        return false;
    }
    return true;
}

bool outcomes_coalesce(struct outcomes *outcomes)
{
    if (outcomes->queued.count == 0 ||
        clock_boot_ns() - outcomes->sent_ns >= COALESCE_MS * CLOCK_NS_PER_MS) {
        return false;
    }
    if (!timer_runs(&outcomes->coalesce)) {
        timer_start_ms(&outcomes->coalesce, COALESCE_MS);
    }
    return true;
}

void outcomes_flush(struct outcomes *outcomes)
{
    if (outcomes->queued.count > 0) {
        outcomes->sent_ns = clock_boot_ns();
    }
    while (outcomes->queued.count > 0 && session_is_up(outcomes->worker->session) &&
           send_batch(outcomes)) {
    }
}

static void on_retry(void *context)
{
    struct outcomes *outcomes = context;
    pending_outcome_list_put_back(&outcomes->queued, &outcomes->kept);
}

static void outcomes_add(struct outcomes *outcomes, struct pending_outcome *pending)
{
    pending_outcome_list_append(&outcomes->queued, pending);
    outcomes->count++;
}

int outcomes_reserve(struct outcomes *outcomes, size_t count)
{
    while (outcomes->spare.count < count) {
        struct pending_outcome *pending = pending_outcome_new();
        if (!pending) {
            return -1;
        }
        pending_outcome_list_append(&outcomes->spare, pending);
    }
    return 0;
}

void outcomes_end(struct outcomes *outcomes, struct attempt *attempt, const struct outcome *outcome,
                  int64_t ttl_ms)
{
    const struct task *task = attempt->task;
    struct pending_outcome *pending = TAILQ_FIRST(&outcomes->spare.list);
    pending_outcome_list_remove(&outcomes->spare, pending);
    pending->attempt = attempt;
    pending->outcome = *outcome;
    pending->ttl_ms = task->result_ttl_ms >= 0 ? task->result_ttl_ms : ttl_ms;
    outcomes_add(outcomes, pending);
}

void outcomes_put_back(struct outcomes *outcomes, const char *token, bool unclaimed)
{
    struct pending_outcome *pending = pending_outcome_new();
    char *copy = strdup(token);
    if (!pending || !copy) {
        free(copy);
        pending_outcome_free(pending);
        session_recover(outcomes->worker->session, REDIS_ERROR_LOST, "out of memory");
        return;
    }
    pending->outcome.verdict = VERDICT_RELEASE;
    pending->token = copy;
    pending->unclaimed = unclaimed;
    outcomes_add(outcomes, pending);
}

size_t outcomes_count(const struct outcomes *outcomes)
{
    return outcomes->count;
}

bool outcomes_troubled(const struct outcomes *outcomes)
{
    return outcomes->refused > 0;
}

static void list_tokens(const struct pending_outcome_list *from, struct token_list *list)
{
    const struct pending_outcome *pending;
    TAILQ_FOREACH(pending, &from->list, link) {
        token_list_add(list, pending_outcome_token(pending));
    }
}

void outcomes_tokens(const struct outcomes *outcomes, struct token_list *list)
{
    list_tokens(&outcomes->queued, list);
    list_tokens(&outcomes->kept, list);
}

void outcomes_unclaimed_tokens(const struct outcomes *outcomes, struct token_list *list)
{
    const struct pending_outcome_list *const lists[] = {&outcomes->queued, &outcomes->kept};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct pending_outcome *pending;
        TAILQ_FOREACH(pending, &lists[i]->list, link) {
            if (!pending->attempt) {
                token_list_add(list, pending_outcome_token(pending));
            }
        }
    }
}

struct outcomes *outcomes_new(struct worker_context *worker, const struct outcomes_events *events)
{
    struct outcomes *outcomes = calloc(1, sizeof *outcomes);
    if (!outcomes) {
        return NULL;
    }
    outcomes->replicas = replicas_new(worker, on_replicated, outcomes);
    if (!outcomes->replicas) {
        free(outcomes);
        return NULL;
    }
    outcomes->worker = worker;
    outcomes->events = *events;
    pending_outcome_list_init(&outcomes->queued);
    pending_outcome_list_init(&outcomes->kept);
    pending_outcome_list_init(&outcomes->asked);
    pending_outcome_list_init(&outcomes->unasked);
    pending_outcome_list_init(&outcomes->spare);
    timer_init(&outcomes->retry, worker->loop, on_retry, outcomes);
    timer_init(&outcomes->coalesce, worker->loop, NULL, NULL); /* the turn that it causes sends */
    return outcomes;
}

/* The session must be closed, so that no batch is in flight. */
void outcomes_free(struct outcomes *outcomes)
{
    if (outcomes) {
        timer_stop(&outcomes->retry);
        timer_stop(&outcomes->coalesce);
        pending_outcome_list_free(&outcomes->queued);
        pending_outcome_list_free(&outcomes->kept);
        replicas_free(outcomes->replicas);
        pending_outcome_list_free(&outcomes->spare);
        buffer_free(&outcomes->successes);
        free(outcomes);
    }
}
