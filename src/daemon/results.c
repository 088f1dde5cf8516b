#include "daemon/results.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/replicas.h"

#define KEPT_RETRY_S 1.0
#define LINGER_MS 6

/* One leat_finish under way: the results it names, in order. */
struct batch {
    struct results *results;
    struct result_list sent;
    struct batch *next, *previous;
};

struct results {
    struct ev_loop *loop;
    struct session *session;
    struct live *live;
    const struct queue *queue;
    const char *consumer;
    struct results_events events;
    struct result_list queued;
    struct result_list kept; /* refused one by one: sent again after a while */
    struct batch under_way;  /* sentinel */
    struct replicas *replicas;
    struct result_list asked;   /* settled; replicas are being asked whether they have it */
    struct result_list unasked; /* settled since; the next question is theirs */
    struct result_list spare;   /* empty ones, for attempts that run */
    size_t count, refused;
    struct command command;
    int64_t sent_ns; /* when results went out last */
    ev_timer retry;
    ev_timer linger; /* ends a wait */
};

/* ---- sending and settling ---- */

static void end_batch(struct batch *batch)
{
    struct results *results = batch->results;
    result_list_put_back(&results->queued, &batch->sent);
    batch->previous->next = batch->next;
    batch->next->previous = batch->previous;
    free(batch);
}

/* Refused: it stays, and is sent again after a while. */
static void keep(struct results *results, struct result_list *from, struct result *result,
                 const char *error)
{
    result_list_remove(from, result);
    result->again = true;
    results->refused += !result->refused;
    result->refused = true;
    result_list_append(&results->kept, result);
    if (!ev_is_active(&results->retry)) {
        ev_timer_set(&results->retry, KEPT_RETRY_S, 0.);
        ev_timer_start(results->loop, &results->retry);
    }
    results->events.settled(results->events.context, result, QUEUE_KEPT, error);
}

static void settle(struct results *results, struct result_list *from, struct result *result,
                   enum queue_settled settled)
{
    result_list_remove(from, result);
    results->count--;
    results->refused -= result->refused;
    results->events.settled(results->events.context, result, settled, NULL);
    result_free(result);
}

/* ---- what is only settled once replicas have it ---- */

/* One question at a time, for all that has come since the last. */
static void ask_replicas(struct results *results)
{
    if (results->unasked.count == 0 || replicas_are_asked(results->replicas)) {
        return;
    }
    if (replicas_ask(results->replicas, results->unasked.count)) {
        result_list_put_back(&results->queued, &results->unasked);
        return;
    }
    while (results->unasked.count > 0) {
        struct result *first = results->unasked.head.next;
        result_list_remove(&results->unasked, first);
        result_list_append(&results->asked, first);
    }
}

static void on_replicated(void *context, bool known)
{
    struct results *results = context;
    if (!known) {
        /* whoever is the master now may not have it */
        result_list_put_back(&results->queued, &results->unasked);
        result_list_put_back(&results->queued, &results->asked);
        return;
    }
    while (results->asked.count > 0) {
        struct result *result = results->asked.head.next;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): as in list_free */
        settle(results, &results->asked, result, result->settled);
    }
    ask_replicas(results);
}

static void take_answer(struct results *results, struct result_list *sent,
                        enum queue_settled settled, const char *error)
{
    struct result *result = sent->head.next;
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): as in list_free */
    if (settled == QUEUE_KEPT) {
        keep(results, sent, result, error);
    } else if (replicas_are_wanted(results->replicas)) {
        result_list_remove(sent, result);
        result->settled = settled;
        result_list_append(&results->unasked, result);
    } else {
        settle(results, sent, result, settled);
    }
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
}

static void on_finished(void *context, const struct redisReply *reply)
{
    struct batch *batch = context;
    struct results *results = batch->results;
    if (!session_check(results->session, reply, "finish")) {
        end_batch(batch);
        return;
    }
    for (size_t i = 0; batch->sent.count > 0; i++) {
        enum queue_settled settled;
        const char *error;
        if (queue_finish_read(reply, i, &settled, &error)) {
            session_recover(results->session, REDIS_ERROR_OTHER,
                            "finish: an answer in an unknown form");
            break;
        }
        take_answer(results, &batch->sent, settled, error);
    }
    end_batch(batch);
    ask_replicas(results);
}

/* Returns whether a batch went out. */
static bool send_batch(struct results *results)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch) {
        session_recover(results->session, REDIS_ERROR_LOST, "out of memory");
        return false;
    }
    batch->results = results;
    result_list_init(&batch->sent);
    queue_finish_begin(&results->command, results->queue, results->consumer);
    while (results->queued.count > 0 && batch->sent.count < QUEUE_FINISH_MAX) {
        struct result *result = results->queued.head.next;
        result_list_remove(&results->queued, result);
        result_list_append(&batch->sent, result);
        result_add_to(&results->command, result);
    }
    batch->next = &results->under_way;
    batch->previous = results->under_way.previous;
    batch->previous->next = batch;
    results->under_way.previous = batch;
    if (session_send(results->session, &results->command, on_finished, batch)) {
        end_batch(batch);
        session_recover(results->session, REDIS_ERROR_LOST, "cannot send a command");
        return false;
    }
    return true;
}

bool results_linger(struct results *results)
{
    if (results->queued.count == 0 ||
        clock_boot_ns() - results->sent_ns >= LINGER_MS * CLOCK_NS_PER_MS) {
        return false;
    }
    if (!ev_is_active(&results->linger)) {
        ev_timer_set(&results->linger, LINGER_MS / 1000., 0.);
        ev_timer_start(results->loop, &results->linger);
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

void results_flush(struct results *results)
{
    live_flush(results->live);
    if (results->queued.count > 0) {
        results->sent_ns = clock_boot_ns();
    }
    while (results->queued.count > 0 && session_is_up(results->session) && send_batch(results)) {
    }
}

static void on_retry(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct results *results = watcher->data;
    result_list_put_back(&results->queued, &results->kept);
}

static void results_add(struct results *results, struct result *result)
{
    result_list_append(&results->queued, result);
    results->count++;
}

int results_reserve(struct results *results, size_t count)
{
    while (results->spare.count < count) {
        struct result *result = result_new();
        if (!result) {
            return -1;
        }
        result_list_append(&results->spare, result);
    }
    return 0;
}

void results_end(struct results *results, struct attempt *attempt, const struct outcome *outcome,
                 int64_t ttl_ms)
{
    const struct task *task = attempt->task;
    struct result *result = results->spare.head.next;
    result_list_remove(&results->spare, result);
    result->attempt = attempt;
    result->outcome = *outcome;
    result->ttl_ms = task->result_ttl_ms >= 0 ? task->result_ttl_ms : ttl_ms;
    results_add(results, result);
}

int results_put_back(struct results *results, const char *token)
{
    struct result *result = result_new();
    if (!result) {
        return -1;
    }
    result->outcome.verdict = VERDICT_RELEASE;
    result->token = strdup(token);
    if (!result->token) {
        result_free(result);
        return -1;
    }
    results_add(results, result);
    return 0;
}

size_t results_count(const struct results *results)
{
    return results->count;
}

bool results_troubled(const struct results *results)
{
    return results->refused > 0;
}

static void list_tokens(const struct result_list *from, struct token_list *list)
{
    for (const struct result *result = from->head.next; result != &from->head;
         result = result->next) {
        token_list_add(list, result_token(result));
    }
}

void results_tokens(const struct results *results, struct token_list *list)
{
    list_tokens(&results->queued, list);
    list_tokens(&results->kept, list);
}

struct results *results_new(struct ev_loop *loop, const struct config *config,
                            struct session *session, struct live *live, const struct queue *queue,
                            const char *consumer, const struct results_events *events)
{
    struct results *results = calloc(1, sizeof *results);
    if (!results) {
        return NULL;
    }
    results->replicas = replicas_new(config, session, queue, on_replicated, results);
    if (!results->replicas) {
        free(results);
        return NULL;
    }
    results->loop = loop;
    results->session = session;
    results->live = live;
    results->queue = queue;
    results->consumer = consumer;
    results->events = *events;
    result_list_init(&results->queued);
    result_list_init(&results->kept);
    result_list_init(&results->asked);
    result_list_init(&results->unasked);
    result_list_init(&results->spare);
    results->under_way.next = results->under_way.previous = &results->under_way;
    ev_timer_init(&results->retry, on_retry, 0., 0.);
    ev_timer_init(&results->linger, on_linger, 0., 0.);
    results->retry.data = results;
    return results;
}

/* The session is closed before: no batch is under way. */
void results_free(struct results *results)
{
    if (results) {
        ev_timer_stop(results->loop, &results->retry);
        ev_timer_stop(results->loop, &results->linger);
        result_list_free(&results->queued);
        result_list_free(&results->kept);
        replicas_free(results->replicas);
        result_list_free(&results->spare);
        command_free(&results->command);
        free(results);
    }
}
