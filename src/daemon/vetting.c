#include "daemon/vetting.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/record.h"
#include "queue/keyring.h"

enum { REASON_SIZE = 160, FIRST_CAPACITY = 16 };

#define CLOCKS_MS 60000 /* by so much clocks may differ, and nobody is told */

struct vetted {
    struct task *task; /* NULL: given away while Redis was asked */
    int64_t sent_ns;
    struct keyring_mark mark;
};

struct vetting {
    const struct config *config;
    struct session *session;
    const struct queue *queue;
    struct host *host;
    struct vetting_events events;
    struct keyring *keyring; /* NULL: libcrypto has failed */

    struct vetted *list; /* in the order in which they came */
    size_t count, capacity;
    size_t asked;           /* the first so many are in the call that is under way */
    size_t tasks, suspects; /* of the list */
    struct command command;
};

bool vetting_is_wanted(const struct vetting *vetting)
{
    return vetting->config->security.signatures == CONFIG_SIGNATURES_REQUIRED;
}

/* ---- taking ---- */

/* Returns 0, or -1 without memory. */
static int add(struct vetting *vetting, const struct vetted *vetted)
{
    if (vetting->count == vetting->capacity) {
        size_t capacity = vetting->capacity ? vetting->capacity * 2 : FIRST_CAPACITY;
        struct vetted *grown = reallocarray(vetting->list, capacity, sizeof *grown);
        if (!grown) {
            return -1;
        }
        vetting->list = grown;
        vetting->capacity = capacity;
    }
    vetting->list[vetting->count++] = *vetted;
    vetting->tasks++;
    vetting->suspects += vetted->task->crashes > 0;
    return 0;
}

/* The task at that place, which is then empty; or NULL. */
static struct task *take_out(struct vetting *vetting, size_t at)
{
    struct task *task = vetting->list[at].task;
    if (task) {
        vetting->list[at].task = NULL;
        vetting->tasks--;
        vetting->suspects -= task->crashes > 0;
    }
    return task;
}

void vetting_take(struct vetting *vetting, struct task *task, int64_t sent_ns)
{
    const struct vetting_events *events = &vetting->events;
    struct vetted vetted = {.task = task, .sent_ns = sent_ns};
    char reason[REASON_SIZE];
    enum keyring_verdict verdict = KEYRING_FAILED;
    if (vetting->keyring) {
        verdict = keyring_verify(vetting->keyring, vetting->config->queue.stream, task,
                                 &vetted.mark, reason, sizeof reason);
    }
    switch (verdict) {
    case KEYRING_REFUSED:
        events->refused(events->context, task, reason);
        return;
    case KEYRING_GOOD:
        if (add(vetting, &vetted) == 0) {
            return;
        }
        events->put_back(events->context, task);
        return;
    case KEYRING_FAILED:
        host_fault(vetting->host, task->tid, "signatures cannot be verified: libcrypto fails");
        events->put_back(events->context, task);
        return;
    }
}

/* ---- asking ---- */

/* The first ones are done with. */
static void forget(struct vetting *vetting, size_t many)
{
    vetting->count -= many;
    for (size_t i = 0; i < vetting->count; i++) {
        vetting->list[i] = vetting->list[i + many];
    }
}

static void refuse(struct vetting *vetting, const struct vetted *vetted, const char *reason)
{
    vetting->events.refused(vetting->events.context, vetted->task, reason);
}

static void refuse_late(struct vetting *vetting, const struct vetted *vetted)
{
    time_t until = (time_t)(vetted->mark.not_after_ms / 1000);
    struct tm parts;
    char when[32] = "", reason[REASON_SIZE];
    if (gmtime_r(&until, &parts)) {
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts); /* fits, or stays empty */
    }
    (void)snprintf(reason, sizeof reason, "its signature was good until %s", when); /* fits */
    refuse(vetting, vetted, reason);
}

/* Redis lets it run, unless it is late by this host's clock. Where that is far ahead of Redis's,
 * one of the two is wrong, which is not the task's fault. */
static void pass(struct vetting *vetting, const struct vetted *vetted)
{
    const struct vetting_events *events = &vetting->events;
    int64_t late_ms = clock_wall_ms() - vetted->mark.not_after_ms;
    if (late_ms < 0) {
        events->passed(events->context, vetted->task, vetted->sent_ns);
    } else if (late_ms < CLOCKS_MS) {
        refuse_late(vetting, vetted);
    } else {
        host_fault(vetting->host, vetted->task->tid,
                   "by its clock a signature is late, by that of Redis it is not");
        events->put_back(events->context, vetted->task);
    }
}

static void settle(struct vetting *vetting, const struct vetted *vetted, enum queue_once once,
                   const char *other)
{
    char reason[REASON_SIZE];
    switch (once) {
    case QUEUE_ONCE_OK:
        pass(vetting, vetted);
        return;
    case QUEUE_ONCE_SEEN:
        /* cut where it is too long */
        (void)snprintf(reason, sizeof reason, "replayed: its signature is that of the task %s",
                       other);
        refuse(vetting, vetted, reason);
        return;
    case QUEUE_ONCE_LATE:
        refuse_late(vetting, vetted);
        return;
    case QUEUE_ONCE_FAR:
        refuse(vetting, vetted, "not_after lies more than 366 days ahead");
        return;
    case QUEUE_ONCE_FORGED:
        refuse(vetting, vetted, "its entry has an id that Redis did not give");
        return;
    }
}

static void on_answer(void *context, const struct redisReply *reply)
{
    struct vetting *vetting = context;
    size_t asked = vetting->asked;
    enum queue_once once;
    const char *other;
    if (!session_check(vetting->session, reply, "signatures")) {
        return; /* the session ends, and they are forgotten */
    }
    for (size_t i = 0; i < asked; i++) {
        if (queue_once_read(reply, i, &once, &other)) {
            session_recover(vetting->session, REDIS_ERROR_OTHER,
                            "signatures: an answer in an unknown form");
            return;
        }
    }
    for (size_t i = 0; i < asked; i++) {
        struct vetted vetted = vetting->list[i];
        if (take_out(vetting, i)) {
            (void)queue_once_read(reply, i, &once, &other); /* read well before */
            settle(vetting, &vetted, once, other);
        }
    }
    vetting->asked = 0;
    forget(vetting, asked);
}

void vetting_turn(struct vetting *vetting)
{
    if (vetting->asked > 0 || vetting->count == 0 || !session_is_up(vetting->session)) {
        return;
    }
    size_t many = vetting->count < QUEUE_ONCE_MAX ? vetting->count : QUEUE_ONCE_MAX;
    queue_once_begin(&vetting->command, vetting->queue);
    for (size_t i = 0; i < many; i++) {
        const struct vetted *vetted = &vetting->list[i];
        const struct bytes mark = {(const char *)vetted->mark.mark, sizeof vetted->mark.mark};
        queue_once_add(&vetting->command, vetted->task, mark, vetted->mark.not_after_ms);
    }
    vetting->asked = many;
    if (session_send(vetting->session, &vetting->command, on_answer, vetting)) {
        session_recover(vetting->session, REDIS_ERROR_LOST, "cannot send a command");
    }
}

/* ---- what it has ---- */

size_t vetting_count(const struct vetting *vetting)
{
    return vetting->tasks;
}

bool vetting_has_suspect(const struct vetting *vetting)
{
    return vetting->suspects > 0;
}

void vetting_tokens(const struct vetting *vetting, struct token_list *list)
{
    for (size_t i = 0; i < vetting->count; i++) {
        if (vetting->list[i].task) {
            token_list_add(list, vetting->list[i].task->token);
        }
    }
}

/* The places that are empty and not asked for go. */
static void close_up(struct vetting *vetting)
{
    size_t kept = vetting->asked;
    for (size_t i = vetting->asked; i < vetting->count; i++) {
        if (vetting->list[i].task) {
            vetting->list[kept++] = vetting->list[i];
        }
    }
    vetting->count = kept;
}

void vetting_told(struct vetting *vetting, const struct token_set *lost,
                  const struct token_set *cancelled)
{
    for (size_t i = 0; i < vetting->count; i++) {
        const struct task *task = vetting->list[i].task;
        if (task && token_set_has(lost, task->token)) {
            task_free(take_out(vetting, i));
        } else if (task && token_set_has(cancelled, task->token)) {
            record_cancelled(task->tid);
            vetting->events.put_back(vetting->events.context, take_out(vetting, i));
        }
    }
    close_up(vetting);
}

void vetting_shut(struct vetting *vetting)
{
    for (size_t i = 0; i < vetting->count; i++) {
        struct task *task = take_out(vetting, i);
        if (task) {
            vetting->events.put_back(vetting->events.context, task);
        }
    }
    close_up(vetting);
}

void vetting_down(struct vetting *vetting)
{
    for (size_t i = 0; i < vetting->count; i++) {
        task_free(take_out(vetting, i));
    }
    vetting->count = vetting->asked = 0;
}

/* ---- life ---- */

void vetting_set_config(struct vetting *vetting, const struct config *config)
{
    vetting->config = config;
    keyring_free(vetting->keyring);
    vetting->keyring = keyring_new(config->security.secrets);
}

struct vetting *vetting_new(const struct config *config, struct session *session,
                            const struct queue *queue, struct host *host,
                            const struct vetting_events *events)
{
    struct vetting *vetting = calloc(1, sizeof *vetting);
    if (vetting) {
        vetting->session = session;
        vetting->queue = queue;
        vetting->host = host;
        vetting->events = *events;
        vetting_set_config(vetting, config);
    }
    return vetting;
}

void vetting_free(struct vetting *vetting)
{
    if (vetting) {
        vetting_down(vetting);
        keyring_free(vetting->keyring);
        free(vetting->list);
        command_free(&vetting->command);
        free(vetting);
    }
}
