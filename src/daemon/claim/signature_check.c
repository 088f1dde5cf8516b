/*
 * Verifies signatures of claimed tasks, and asks Redis whether each was used before.
 */
#include "daemon/claim/signature_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "daemon/report/task_log.h"
#include "queue/calls.h"
#include "queue/keyring.h"
#include "queue/replies.h"

enum { REASON_SIZE = 160 };

#define CLOCKS_MS 60000 /* the tolerated difference between this host's clock and Redis's */

struct signed_task {
    struct task *task; /* NULL: freed or given back while Redis was asked */
    int64_t sent_ns;
    struct keyring_mark mark;
};

struct signature_check {
    struct worker_context *worker;
    struct host *host;
    struct signature_check_events events;
    struct keyring *keyring; /* NULL: libcrypto failed */

    struct signed_task *list; /* in the order in which they came */
    size_t count;
    size_t asked;        /* how many, from the first, are in the call in flight */
    size_t tasks, alone; /* in the list; of these, tasks that run alone */
};

bool signature_check_is_wanted(const struct signature_check *signature_check)
{
    return signature_check->worker->config->security.signatures == CONFIG_SIGNATURES_REQUIRED;
}

/* ---- taking ---- */

/* Returns 0, or -1 without memory. */
static int add(struct signature_check *signature_check, const struct signed_task *entry)
{
    struct signed_task *list =
        array_grow(signature_check->list, signature_check->count, sizeof *list);
    if (!list) {
        return -1;
    }
    signature_check->list = list;
    list[signature_check->count++] = *entry;
    signature_check->tasks++;
    signature_check->alone += entry->task->alone;
    return 0;
}

/* Removes and returns the task at that index; NULL if there is none. */
static struct task *take_out(struct signature_check *signature_check, size_t at)
{
    struct task *task = signature_check->list[at].task;
    if (task) {
        signature_check->list[at].task = NULL;
        signature_check->tasks--;
        signature_check->alone -= task->alone;
    }
    return task;
}

void signature_check_take(struct signature_check *signature_check, struct task *task,
                          int64_t sent_ns)
{
    const struct signature_check_events *events = &signature_check->events;
    struct signed_task entry = {.task = task, .sent_ns = sent_ns};
    char reason[REASON_SIZE];
    enum keyring_verdict verdict = KEYRING_FAILED;
    if (signature_check->keyring) {
        verdict =
            keyring_verify(signature_check->keyring, signature_check->worker->config->queue.stream,
                           task, &entry.mark, reason, sizeof reason);
    }
    switch (verdict) {
    case KEYRING_REFUSED:
        events->refused(events->context, task, reason);
        return;
    case KEYRING_GOOD:
        if (add(signature_check, &entry) == 0) {
            return;
        }
        events->put_back(events->context, task);
        return;
    case KEYRING_FAILED:
        host_fault(signature_check->host, task->tid, "cannot verify signatures: libcrypto failed");
        events->put_back(events->context, task);
        return;
    }
}

/* ---- asking ---- */

/* Removes the first `many` entries. */
static void forget(struct signature_check *signature_check, size_t many)
{
    signature_check->count -= many;
    for (size_t i = 0; i < signature_check->count; i++) {
        signature_check->list[i] = signature_check->list[i + many];
    }
}

static void refuse(struct signature_check *signature_check, const struct signed_task *entry,
                   const char *reason)
{
    signature_check->events.refused(signature_check->events.context, entry->task, reason);
}

static void refuse_late(struct signature_check *signature_check, const struct signed_task *entry)
{
    time_t until = (time_t)(entry->mark.not_after_ms / 1000);
    struct tm parts;
    char when[32] = "", reason[REASON_SIZE];
    if (gmtime_r(&until, &parts)) {
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts); /* empty if it fails */
    }
    (void)snprintf(reason, sizeof reason, "its signature expired at %s", when);
    refuse(signature_check, entry, reason);
}

/* Redis accepts the signature. If it has expired by this host's clock, which is far ahead of
 * Redis's, one of the two clocks is wrong, which is not the task's fault. */
static void pass(struct signature_check *signature_check, const struct signed_task *entry)
{
    const struct signature_check_events *events = &signature_check->events;
    int64_t late_ms = clock_wall_ms() - entry->mark.not_after_ms;
    if (late_ms < 0) {
        entry->task->signed_until_ms = entry->mark.not_after_ms;
        events->passed(events->context, entry->task, entry->sent_ns);
    } else if (late_ms < CLOCKS_MS) {
        refuse_late(signature_check, entry);
    } else {
        host_fault(signature_check->host, entry->task->tid,
                   "its clock is ahead: a signature has expired here, but not on Redis");
        events->put_back(events->context, entry->task);
    }
}

static void settle(struct signature_check *signature_check, const struct signed_task *entry,
                   enum queue_once once, const char *other)
{
    char reason[REASON_SIZE];
    switch (once) {
    case QUEUE_ONCE_OK:
        pass(signature_check, entry);
        return;
    case QUEUE_ONCE_SEEN:
        (void)snprintf(reason, sizeof reason, "replayed: it has the signature of task %s", other);
        refuse(signature_check, entry, reason);
        return;
    case QUEUE_ONCE_LATE:
        refuse_late(signature_check, entry);
        return;
    case QUEUE_ONCE_FAR:
        refuse(signature_check, entry, "not_after is more than 366 days ahead");
        return;
    case QUEUE_ONCE_FORGED:
        refuse(signature_check, entry,
               "a producer chose the id of its entry; let Redis choose it, by XADD with *");
        return;
    }
}

static void on_answer(void *context, const struct redisReply *reply)
{
    struct signature_check *signature_check = context;
    size_t asked = signature_check->asked;
    enum queue_once once;
    const char *other;
    int malformed = 0;
    for (size_t i = 0; i < asked; i++) {
        malformed |= queue_once_read(reply, i, &once, &other);
    }
    if (!session_check(signature_check->worker->session, reply, malformed, "signatures")) {
        return; /* the session is closing, and signature_check_down frees the tasks */
    }
    for (size_t i = 0; i < asked; i++) {
        struct signed_task entry = signature_check->list[i];
        if (take_out(signature_check, i)) {
            (void)queue_once_read(reply, i, &once, &other); /* cannot fail: it was read above */
            settle(signature_check, &entry, once, other);
        }
    }
    signature_check->asked = 0;
    forget(signature_check, asked);
}

void signature_check_turn(struct signature_check *signature_check)
{
    if (signature_check->asked > 0 || signature_check->count == 0 ||
        !session_is_up(signature_check->worker->session)) {
        return;
    }
    size_t many = signature_check->count < QUEUE_ONCE_MAX ? signature_check->count : QUEUE_ONCE_MAX;
    queue_once_begin(&signature_check->worker->command, signature_check->worker->queue);
    for (size_t i = 0; i < many; i++) {
        const struct signed_task *entry = &signature_check->list[i];
        const struct bytes mark = {(const char *)entry->mark.mark, sizeof entry->mark.mark};
        queue_once_add(&signature_check->worker->command, entry->task, mark,
                       entry->mark.not_after_ms);
    }
    signature_check->asked = many;
    /* a failure recovers */
    (void)session_send(signature_check->worker->session, on_answer, signature_check);
}

/* ---- the tasks ---- */

size_t signature_check_count(const struct signature_check *signature_check)
{
    return signature_check->tasks;
}

bool signature_check_has_lone_task(const struct signature_check *signature_check)
{
    return signature_check->alone > 0;
}

void signature_check_tokens(const struct signature_check *signature_check, struct token_list *list)
{
    for (size_t i = 0; i < signature_check->count; i++) {
        if (signature_check->list[i].task) {
            token_list_add(list, signature_check->list[i].task->token);
        }
    }
}

/* Removes empty entries that are not in the call in flight. */
static void close_up(struct signature_check *signature_check)
{
    size_t kept = signature_check->asked;
    for (size_t i = signature_check->asked; i < signature_check->count; i++) {
        if (signature_check->list[i].task) {
            signature_check->list[kept++] = signature_check->list[i];
        }
    }
    signature_check->count = kept;
}

void signature_check_remove(struct signature_check *signature_check, const struct token_set *lost,
                            const struct token_set *cancelled)
{
    for (size_t i = 0; i < signature_check->count; i++) {
        const struct task *task = signature_check->list[i].task;
        if (task && token_set_has(lost, task->token)) {
            task_free(take_out(signature_check, i));
        } else if (task && token_set_has(cancelled, task->token)) {
            task_log_cancelled(task->tid);
            signature_check->events.put_back(signature_check->events.context,
                                             take_out(signature_check, i));
        }
    }
    close_up(signature_check);
}

void signature_check_put_back(struct signature_check *signature_check)
{
    for (size_t i = 0; i < signature_check->count; i++) {
        struct task *task = take_out(signature_check, i);
        if (task) {
            signature_check->events.put_back(signature_check->events.context, task);
        }
    }
    close_up(signature_check);
}

void signature_check_down(struct signature_check *signature_check)
{
    for (size_t i = 0; i < signature_check->count; i++) {
        task_free(take_out(signature_check, i));
    }
    signature_check->count = signature_check->asked = 0;
}

/* ---- creation and reload ---- */

void signature_check_reload(struct signature_check *signature_check)
{
    keyring_free(signature_check->keyring);
    signature_check->keyring = keyring_new(signature_check->worker->config->security.secrets);
}

struct signature_check *signature_check_new(struct worker_context *worker, struct host *host,
                                            const struct signature_check_events *events)
{
    struct signature_check *signature_check = calloc(1, sizeof *signature_check);
    if (signature_check) {
        signature_check->worker = worker;
        signature_check->host = host;
        signature_check->events = *events;
        signature_check_reload(signature_check);
    }
    return signature_check;
}

void signature_check_free(struct signature_check *signature_check)
{
    if (signature_check) {
        signature_check_down(signature_check);
        keyring_free(signature_check->keyring);
        free(signature_check->list);
        free(signature_check);
    }
}
