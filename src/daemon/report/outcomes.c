#include "daemon/report/outcomes.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/report/replicas.h"

#define KEPT_RETRY_S 1.0
#define LINGER_MS 6

/* One leat_finish under way: the results it names, in order. */
struct batch {
    struct outcomes *outcomes;
    struct pending_outcome_list sent;
    struct batch *next, *previous;
};

struct outcomes {
    struct ev_loop *loop;
    struct session *session;
    struct live *live;
    const struct queue *queue;
    const char *consumer;
    struct outcomes_events events;
    struct pending_outcome_list queued;
    struct pending_outcome_list kept; /* refused one by one: sent again after a while */
    struct batch under_way;           /* sentinel */
    struct replicas *replicas;
    struct pending_outcome_list asked; /* settled; replicas are being asked whether they have it */
    struct pending_outcome_list unasked; /* settled since; the next question is theirs */
    struct pending_outcome_list spare;   /* empty ones, for attempts that run */
    size_t count, refused;
    struct command command;
    int64_t sent_ns; /* when results went out last */
    ev_timer retry;
    ev_timer linger; /* ends a wait */
};

/* ---- sending and settling ---- */

static void end_batch(struct batch *batch)
{
    struct outcomes *outcomes = batch->outcomes;
    pending_outcome_list_put_back(&outcomes->queued, &batch->sent);
    batch->previous->next = batch->next;
    batch->next->previous = batch->previous;
    free(batch);
}

/* Refused: it stays, and is sent again after a while. */
static void keep(struct outcomes *outcomes, struct pending_outcome_list *from,
                 struct pending_outcome *result, const char *error)
{
    pending_outcome_list_remove(from, result);
    result->again = true;
    outcomes->refused += !result->refused;
    result->refused = true;
    pending_outcome_list_append(&outcomes->kept, result);
    if (!ev_is_active(&outcomes->retry)) {
        ev_timer_set(&outcomes->retry, KEPT_RETRY_S, 0.);
        ev_timer_start(outcomes->loop, &outcomes->retry);
    }
    outcomes->events.settled(outcomes->events.context, result, QUEUE_KEPT, error);
}

static void settle(struct outcomes *outcomes, struct pending_outcome_list *from,
                   struct pending_outcome *result, enum queue_settled settled)
{
    pending_outcome_list_remove(from, result);
    outcomes->count--;
    outcomes->refused -= result->refused;
    outcomes->events.settled(outcomes->events.context, result, settled, NULL);
    pending_outcome_free(result);
}

/* ---- what is only settled once replicas have it ---- */

/* One question at a time, for all that has come since the last. */
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
        struct pending_outcome *first = outcomes->unasked.head.next;
        pending_outcome_list_remove(&outcomes->unasked, first);
        pending_outcome_list_append(&outcomes->asked, first);
    }
}

static void on_replicated(void *context, bool known)
{
    struct outcomes *outcomes = context;
    if (!known) {
        /* whoever is the master now may not have it */
        pending_outcome_list_put_back(&outcomes->queued, &outcomes->unasked);
        pending_outcome_list_put_back(&outcomes->queued, &outcomes->asked);
        return;
    }
    while (outcomes->asked.count > 0) {
        struct pending_outcome *result = outcomes->asked.head.next;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): as in list_free */
        settle(outcomes, &outcomes->asked, result, result->settled);
    }
    ask_replicas(outcomes);
}

static void take_answer(struct outcomes *outcomes, struct pending_outcome_list *sent,
                        enum queue_settled settled, const char *error)
{
    struct pending_outcome *result = sent->head.next;
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): as in list_free */
    if (settled == QUEUE_KEPT) {
        keep(outcomes, sent, result, error);
    } else if (replicas_are_wanted(outcomes->replicas)) {
        pending_outcome_list_remove(sent, result);
        result->settled = settled;
        pending_outcome_list_append(&outcomes->unasked, result);
    } else {
        settle(outcomes, sent, result, settled);
    }
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
}

static void on_finished(void *context, const struct redisReply *reply)
{
    struct batch *batch = context;
    struct outcomes *outcomes = batch->outcomes;
    if (!session_check(outcomes->session, reply, "finish")) {
        end_batch(batch);
        return;
    }
    for (size_t i = 0; batch->sent.count > 0; i++) {
        enum queue_settled settled;
        const char *error;
        if (queue_finish_read(reply, i, &settled, &error)) {
            session_recover(outcomes->session, REDIS_ERROR_OTHER,
                            "finish: an answer in an unknown form");
            break;
        }
        take_answer(outcomes, &batch->sent, settled, error);
    }
    end_batch(batch);
    ask_replicas(outcomes);
}

/* Returns whether a batch went out. */
static bool send_batch(struct outcomes *outcomes)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch) {
        session_recover(outcomes->session, REDIS_ERROR_LOST, "out of memory");
        return false;
    }
    batch->outcomes = outcomes;
    pending_outcome_list_init(&batch->sent);
    queue_finish_begin(&outcomes->command, outcomes->queue, outcomes->consumer);
    while (outcomes->queued.count > 0 && batch->sent.count < QUEUE_FINISH_MAX) {
        struct pending_outcome *result = outcomes->queued.head.next;
        pending_outcome_list_remove(&outcomes->queued, result);
        pending_outcome_list_append(&batch->sent, result);
        pending_outcome_add_to(&outcomes->command, result);
    }
    batch->next = &outcomes->under_way;
    batch->previous = outcomes->under_way.previous;
    batch->previous->next = batch;
    outcomes->under_way.previous = batch;
    if (session_send(outcomes->session, &outcomes->command, on_finished, batch)) {
        end_batch(batch);
        session_recover(outcomes->session, REDIS_ERROR_LOST, "cannot send a command");
        return false;
    }
    return true;
}

bool outcomes_coalesce(struct outcomes *outcomes)
{
    if (outcomes->queued.count == 0 ||
        clock_boot_ns() - outcomes->sent_ns >= LINGER_MS * CLOCK_NS_PER_MS) {
        return false;
    }
    if (!ev_is_active(&outcomes->linger)) {
        ev_timer_set(&outcomes->linger, LINGER_MS / 1000., 0.);
        ev_timer_start(outcomes->loop, &outcomes->linger);
    }
    return true;
}

static void on_linger(struct ev_loop *loop, ev_timer *watcher, int events)
{
    /* the turn that this ends sends */
    (void)loop;
    (void)watcher;
    (void)events;
}

void outcomes_flush(struct outcomes *outcomes)
{
    live_flush(outcomes->live);
    if (outcomes->queued.count > 0) {
        outcomes->sent_ns = clock_boot_ns();
    }
    while (outcomes->queued.count > 0 && session_is_up(outcomes->session) && send_batch(outcomes)) {
    }
}

static void on_retry(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct outcomes *outcomes = watcher->data;
    pending_outcome_list_put_back(&outcomes->queued, &outcomes->kept);
}

static void outcomes_add(struct outcomes *outcomes, struct pending_outcome *result)
{
    pending_outcome_list_append(&outcomes->queued, result);
    outcomes->count++;
}

int outcomes_reserve(struct outcomes *outcomes, size_t count)
{
    while (outcomes->spare.count < count) {
        struct pending_outcome *result = pending_outcome_new();
        if (!result) {
            return -1;
        }
        pending_outcome_list_append(&outcomes->spare, result);
    }
    return 0;
}

void outcomes_end(struct outcomes *outcomes, struct attempt *attempt, const struct outcome *outcome,
                  int64_t ttl_ms)
{
    const struct task *task = attempt->task;
    struct pending_outcome *result = outcomes->spare.head.next;
    pending_outcome_list_remove(&outcomes->spare, result);
    result->attempt = attempt;
    result->outcome = *outcome;
    result->ttl_ms = task->result_ttl_ms >= 0 ? task->result_ttl_ms : ttl_ms;
    outcomes_add(outcomes, result);
}

int outcomes_put_back(struct outcomes *outcomes, const char *token)
{
    struct pending_outcome *result = pending_outcome_new();
    if (!result) {
        return -1;
    }
    result->outcome.verdict = VERDICT_RELEASE;
    result->token = strdup(token);
    if (!result->token) {
        pending_outcome_free(result);
        return -1;
    }
    outcomes_add(outcomes, result);
    return 0;
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
    for (const struct pending_outcome *result = from->head.next; result != &from->head;
         result = result->next) {
        token_list_add(list, pending_outcome_token(result));
    }
}

void outcomes_tokens(const struct outcomes *outcomes, struct token_list *list)
{
    list_tokens(&outcomes->queued, list);
    list_tokens(&outcomes->kept, list);
}

struct outcomes *outcomes_new(struct ev_loop *loop, const struct config *config,
                              struct session *session, struct live *live, const struct queue *queue,
                              const char *consumer, const struct outcomes_events *events)
{
    struct outcomes *outcomes = calloc(1, sizeof *outcomes);
    if (!outcomes) {
        return NULL;
    }
    outcomes->replicas = replicas_new(config, session, queue, on_replicated, outcomes);
    if (!outcomes->replicas) {
        free(outcomes);
        return NULL;
    }
    outcomes->loop = loop;
    outcomes->session = session;
    outcomes->live = live;
    outcomes->queue = queue;
    outcomes->consumer = consumer;
    outcomes->events = *events;
    pending_outcome_list_init(&outcomes->queued);
    pending_outcome_list_init(&outcomes->kept);
    pending_outcome_list_init(&outcomes->asked);
    pending_outcome_list_init(&outcomes->unasked);
    pending_outcome_list_init(&outcomes->spare);
    outcomes->under_way.next = outcomes->under_way.previous = &outcomes->under_way;
    ev_timer_init(&outcomes->retry, on_retry, 0., 0.);
    ev_timer_init(&outcomes->linger, on_linger, 0., 0.);
    outcomes->retry.data = outcomes;
    return outcomes;
}

/* The session is closed before: no batch is under way. */
void outcomes_free(struct outcomes *outcomes)
{
    if (outcomes) {
        ev_timer_stop(outcomes->loop, &outcomes->retry);
        ev_timer_stop(outcomes->loop, &outcomes->linger);
        pending_outcome_list_free(&outcomes->queued);
        pending_outcome_list_free(&outcomes->kept);
        replicas_free(outcomes->replicas);
        pending_outcome_list_free(&outcomes->spare);
        command_free(&outcomes->command);
        free(outcomes);
    }
}
