#include "daemon/results.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/replicas.h"

#define KEPT_RETRY_S 1.0
#define LINGER_MS 4

struct result {
    struct result *next, *previous;
    struct attempt *attempt; /* NULL: only a token goes back */
    char *token;             /* owned; NULL where the attempt has it */
    struct outcome outcome;
    int64_t ttl_ms; /* for how long Redis keeps it; 0: not */
    bool again;
    bool refused;               /* Redis has refused it once */
    enum queue_settled settled; /* while it waits for replicas */
};

/* A list with a sentinel. */
struct result_list {
    struct result head;
    size_t count;
};

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
    size_t count, refused;
    struct command command;
    int64_t sent_ns; /* when results went out last */
    ev_timer retry;
    ev_timer linger; /* ends a wait */
};

/* ---- lists ---- */

static void list_init(struct result_list *list)
{
    list->head.next = list->head.previous = &list->head;
    list->count = 0;
}

static void list_append(struct result_list *list, struct result *result)
{
    result->next = &list->head;
    result->previous = list->head.previous;
    result->previous->next = result;
    list->head.previous = result;
    list->count++;
}

static void list_remove(struct result_list *list, struct result *result)
{
    result->previous->next = result->next;
    result->next->previous = result->previous;
    list->count--;
}

/* In front, in their order: what was sent first goes first again. */
static void list_put_back(struct result_list *to, struct result_list *from)
{
    while (from->count > 0) {
        struct result *last = from->head.previous;
        list_remove(from, last);
        last->again = true;
        last->next = to->head.next;
        last->previous = &to->head;
        last->next->previous = last;
        to->head.next = last;
        to->count++;
    }
}

static void list_free(struct result_list *list)
{
    while (list->count > 0) {
        struct result *first = list->head.next;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that the list closes up */
        list_remove(list, first);
        result_free(first);
    }
}

/* ---- one result ---- */

struct result *result_new(void)
{
    return calloc(1, sizeof(struct result));
}

void result_free(struct result *result)
{
    if (result) {
        if (result->attempt) {
            attempt_free(result->attempt);
        }
        free(result->token);
        free(result);
    }
}

void result_set_attempt(struct result *result, struct attempt *attempt,
                        const struct outcome *outcome, int64_t ttl_ms)
{
    const struct task *task = attempt->task;
    result->attempt = attempt;
    result->outcome = *outcome;
    result->ttl_ms = task->result_ttl_ms >= 0 ? task->result_ttl_ms : ttl_ms;
}

const struct attempt *result_attempt(const struct result *result)
{
    return result->attempt;
}

bool result_sent_before(const struct result *result)
{
    return result->again;
}

enum verdict result_verdict(const struct result *result)
{
    return result->outcome.verdict;
}

const char *result_token(const struct result *result)
{
    return result->attempt ? result->attempt->task->token : result->token;
}

static enum queue_outcome queue_outcome_of(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_SUCCESS:
        return QUEUE_SUCCESS;
    case VERDICT_RETRY:
        return QUEUE_RETRY;
    case VERDICT_DEAD:
        return QUEUE_DEAD;
    case VERDICT_RELEASE:
        return QUEUE_RELEASE;
    case VERDICT_CANCELLED:
        return QUEUE_CANCELLED;
    }
    return QUEUE_RELEASE;
}

/* Texts of numbers that go into the call. */
struct texts {
    char status[32], usage[USAGE_TEXT];
};

static void tell_attempt(const struct result *result, struct queue_result *told,
                         struct texts *texts)
{
    const struct attempt *attempt = result->attempt;
    told->duration_us = attempt->duration_us;
    if (told->outcome != QUEUE_RELEASE) {
        ending_status(&attempt->ending, texts->status, sizeof texts->status);
        told->status = texts->status;
    }
    if (told->outcome == QUEUE_RETRY || told->outcome == QUEUE_DEAD) {
        told->cause = cause_name(attempt->ending.cause);
        told->reason = attempt->reason;
    }

    /* what ends the task: kept with its dead letter, and with its result */
    bool last = told->outcome == QUEUE_SUCCESS || told->outcome == QUEUE_DEAD;
    told->result_ttl_ms = last ? result->ttl_ms : 0;
    if (told->outcome == QUEUE_DEAD || told->result_ttl_ms > 0) {
        told->stdout_tail = attempt->stdout_tail;
        told->stderr_tail = attempt->stderr_tail;
        usage_format(&attempt->usage, texts->usage, sizeof texts->usage);
        told->usage = texts->usage;
    }
}

static void add_to_command(struct command *command, const struct result *result)
{
    struct queue_result told = {.token = result_token(result),
                                .outcome = queue_outcome_of(result->outcome.verdict),
                                .cause = "",
                                .status = "",
                                .reason = "",
                                .usage = "",
                                .delay_ms = result->outcome.delay_ms,
                                .again = result->again};
    struct texts texts;
    if (result->attempt) {
        tell_attempt(result, &told, &texts);
    }
    queue_finish_add(command, &told);
}

/* ---- sending and settling ---- */

static void end_batch(struct batch *batch)
{
    struct results *results = batch->results;
    list_put_back(&results->queued, &batch->sent);
    batch->previous->next = batch->next;
    batch->next->previous = batch->previous;
    free(batch);
}

/* Refused: it stays, and is sent again after a while. */
static void keep(struct results *results, struct result_list *from, struct result *result,
                 const char *error)
{
    list_remove(from, result);
    result->again = true;
    results->refused += !result->refused;
    result->refused = true;
    list_append(&results->kept, result);
    if (!ev_is_active(&results->retry)) {
        ev_timer_set(&results->retry, KEPT_RETRY_S, 0.);
        ev_timer_start(results->loop, &results->retry);
    }
    results->events.settled(results->events.context, result, QUEUE_KEPT, error);
}

static void settle(struct results *results, struct result_list *from, struct result *result,
                   enum queue_settled settled)
{
    list_remove(from, result);
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
        list_put_back(&results->queued, &results->unasked);
        return;
    }
    while (results->unasked.count > 0) {
        struct result *first = results->unasked.head.next;
        list_remove(&results->unasked, first);
        list_append(&results->asked, first);
    }
}

static void on_replicated(void *context, bool known)
{
    struct results *results = context;
    if (!known) {
        /* whoever is the master now may not have it */
        list_put_back(&results->queued, &results->unasked);
        list_put_back(&results->queued, &results->asked);
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
        list_remove(sent, result);
        result->settled = settled;
        list_append(&results->unasked, result);
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
    list_init(&batch->sent);
    queue_finish_begin(&results->command, results->queue, results->consumer);
    while (results->queued.count > 0 && batch->sent.count < QUEUE_FINISH_MAX) {
        struct result *result = results->queued.head.next;
        list_remove(&results->queued, result);
        list_append(&batch->sent, result);
        add_to_command(&results->command, result);
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
    list_put_back(&results->queued, &results->kept);
}

void results_add(struct results *results, struct result *result)
{
    list_append(&results->queued, result);
    results->count++;
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
    list_init(&results->queued);
    list_init(&results->kept);
    list_init(&results->asked);
    list_init(&results->unasked);
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
        list_free(&results->queued);
        list_free(&results->kept);
        replicas_free(results->replicas);
        command_free(&results->command);
        free(results);
    }
}
