#include "daemon/claim/signature_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/report/task_log.h"
#include "queue/keyring.h"

enum { REASON_SIZE = 160, FIRST_CAPACITY = 16 };

#define CLOCKS_MS 60000 /* by so much clocks may differ, and nobody is told */

struct vetted {
    struct task *task; /* NULL: given away while Redis was asked */
    int64_t sent_ns;
    struct keyring_mark mark;
};

struct signature_check {
    const struct config *config;
    struct session *session;
    const struct queue *queue;
    struct host *host;
    struct signature_check_events events;
    struct keyring *keyring; /* NULL: libcrypto has failed */

    struct vetted *list; /* in the order in which they came */
    size_t count, capacity;
    size_t asked;           /* the first so many are in the call that is under way */
    size_t tasks, suspects; /* of the list */
    struct command command;
};

bool signature_check_is_wanted(const struct signature_check *signature_check)
{
    return signature_check->config->security.signatures == CONFIG_SIGNATURES_REQUIRED;
}

/* ---- taking ---- */

/* Returns 0, or -1 without memory. */
static int add(struct signature_check *signature_check, const struct vetted *vetted)
{
    if (signature_check->count == signature_check->capacity) {
        size_t capacity =
            signature_check->capacity ? signature_check->capacity * 2 : FIRST_CAPACITY;
        struct vetted *grown = reallocarray(signature_check->list, capacity, sizeof *grown);
        if (!grown) {
            return -1;
        }
        signature_check->list = grown;
        signature_check->capacity = capacity;
    }
    signature_check->list[signature_check->count++] = *vetted;
    signature_check->tasks++;
    signature_check->suspects += vetted->task->crashes > 0;
    return 0;
}

/* The task at that place, which is then empty; or NULL. */
static struct task *take_out(struct signature_check *signature_check, size_t at)
{
    struct task *task = signature_check->list[at].task;
    if (task) {
        signature_check->list[at].task = NULL;
        signature_check->tasks--;
        signature_check->suspects -= task->crashes > 0;
    }
    return task;
}

void signature_check_take(struct signature_check *signature_check, struct task *task,
                          int64_t sent_ns)
{
    const struct signature_check_events *events = &signature_check->events;
    struct vetted vetted = {.task = task, .sent_ns = sent_ns};
    char reason[REASON_SIZE];
    enum keyring_verdict verdict = KEYRING_FAILED;
    if (signature_check->keyring) {
        verdict = keyring_verify(signature_check->keyring, signature_check->config->queue.stream,
                                 task, &vetted.mark, reason, sizeof reason);
    }
    switch (verdict) {
    case KEYRING_REFUSED:
        events->refused(events->context, task, reason);
        return;
    case KEYRING_GOOD:
        if (add(signature_check, &vetted) == 0) {
            return;
        }
        events->put_back(events->context, task);
        return;
    case KEYRING_FAILED:
        host_fault(signature_check->host, task->tid,
                   "signatures cannot be verified: libcrypto fails");
        events->put_back(events->context, task);
        return;
    }
}

/* ---- asking ---- */

/* The first ones are done with. */
static void forget(struct signature_check *signature_check, size_t many)
{
    signature_check->count -= many;
    for (size_t i = 0; i < signature_check->count; i++) {
        signature_check->list[i] = signature_check->list[i + many];
    }
}

static void refuse(struct signature_check *signature_check, const struct vetted *vetted,
                   const char *reason)
{
    signature_check->events.refused(signature_check->events.context, vetted->task, reason);
}

static void refuse_late(struct signature_check *signature_check, const struct vetted *vetted)
{
    time_t until = (time_t)(vetted->mark.not_after_ms / 1000);
    struct tm parts;
    char when[32] = "", reason[REASON_SIZE];
    if (gmtime_r(&until, &parts)) {
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts); /* fits, or stays empty */
    }
    (void)snprintf(reason, sizeof reason, "its signature was good until %s", when); /* fits */
    refuse(signature_check, vetted, reason);
}

/* Redis lets it run, unless it is late by this host's clock. Where that is far ahead of Redis's,
 * one of the two is wrong, which is not the task's fault. */
static void pass(struct signature_check *signature_check, const struct vetted *vetted)
{
    const struct signature_check_events *events = &signature_check->events;
    int64_t late_ms = clock_wall_ms() - vetted->mark.not_after_ms;
    if (late_ms < 0) {
        events->passed(events->context, vetted->task, vetted->sent_ns);
    } else if (late_ms < CLOCKS_MS) {
        refuse_late(signature_check, vetted);
    } else {
        host_fault(signature_check->host, vetted->task->tid,
                   "by its clock a signature is late, by that of Redis it is not");
        events->put_back(events->context, vetted->task);
    }
}

static void settle(struct signature_check *signature_check, const struct vetted *vetted,
                   enum queue_once once, const char *other)
{
    char reason[REASON_SIZE];
    switch (once) {
    case QUEUE_ONCE_OK:
        pass(signature_check, vetted);
        return;
    case QUEUE_ONCE_SEEN:
        /* cut where it is too long */
        (void)snprintf(reason, sizeof reason, "replayed: its signature is that of the task %s",
                       other);
        refuse(signature_check, vetted, reason);
        return;
    case QUEUE_ONCE_LATE:
        refuse_late(signature_check, vetted);
        return;
    case QUEUE_ONCE_FAR:
        refuse(signature_check, vetted, "not_after lies more than 366 days ahead");
        return;
    case QUEUE_ONCE_FORGED:
        refuse(signature_check, vetted,
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
    if (!session_check(signature_check->session, reply, "signatures")) {
        return; /* the session ends, and they are forgotten */
    }
    for (size_t i = 0; i < asked; i++) {
        if (queue_once_read(reply, i, &once, &other)) {
            session_recover(signature_check->session, REDIS_ERROR_OTHER,
                            "signatures: an answer in an unknown form");
            return;
        }
    }
    for (size_t i = 0; i < asked; i++) {
        struct vetted vetted = signature_check->list[i];
        if (take_out(signature_check, i)) {
            (void)queue_once_read(reply, i, &once, &other); /* read well before */
            settle(signature_check, &vetted, once, other);
        }
    }
    signature_check->asked = 0;
    forget(signature_check, asked);
}

void signature_check_turn(struct signature_check *signature_check)
{
    if (signature_check->asked > 0 || signature_check->count == 0 ||
        !session_is_up(signature_check->session)) {
        return;
    }
    size_t many = signature_check->count < QUEUE_ONCE_MAX ? signature_check->count : QUEUE_ONCE_MAX;
    queue_once_begin(&signature_check->command, signature_check->queue);
    for (size_t i = 0; i < many; i++) {
        const struct vetted *vetted = &signature_check->list[i];
        const struct bytes mark = {(const char *)vetted->mark.mark, sizeof vetted->mark.mark};
        queue_once_add(&signature_check->command, vetted->task, mark, vetted->mark.not_after_ms);
    }
    signature_check->asked = many;
    if (session_send(signature_check->session, &signature_check->command, on_answer,
                     signature_check)) {
        session_recover(signature_check->session, REDIS_ERROR_LOST, "cannot send a command");
    }
}

/* ---- what it has ---- */

size_t signature_check_count(const struct signature_check *signature_check)
{
    return signature_check->tasks;
}

bool signature_check_has_suspect(const struct signature_check *signature_check)
{
    return signature_check->suspects > 0;
}

void signature_check_tokens(const struct signature_check *signature_check, struct token_list *list)
{
    for (size_t i = 0; i < signature_check->count; i++) {
        if (signature_check->list[i].task) {
            token_list_add(list, signature_check->list[i].task->token);
        }
    }
}

/* The places that are empty and not asked for go. */
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

void signature_check_told(struct signature_check *signature_check, const struct token_set *lost,
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

void signature_check_shut(struct signature_check *signature_check)
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

/* ---- life ---- */

void signature_check_set_config(struct signature_check *signature_check,
                                const struct config *config)
{
    signature_check->config = config;
    keyring_free(signature_check->keyring);
    signature_check->keyring = keyring_new(config->security.secrets);
}

struct signature_check *signature_check_new(const struct config *config, struct session *session,
                                            const struct queue *queue, struct host *host,
                                            const struct signature_check_events *events)
{
    struct signature_check *signature_check = calloc(1, sizeof *signature_check);
    if (signature_check) {
        signature_check->session = session;
        signature_check->queue = queue;
        signature_check->host = host;
        signature_check->events = *events;
        signature_check_set_config(signature_check, config);
    }
    return signature_check;
}

void signature_check_free(struct signature_check *signature_check)
{
    if (signature_check) {
        signature_check_down(signature_check);
        keyring_free(signature_check->keyring);
        free(signature_check->list);
        command_free(&signature_check->command);
        free(signature_check);
    }
}
