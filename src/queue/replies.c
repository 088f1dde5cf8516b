/*
 * Reads the replies to the calls of queue.c. Each step checks what Redis sends: another version of
 * the library, or another program on that port, must not crash a worker.
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/replies.h"
#include "redis/error.h"
#include "redis/value.h"

/* Redis may hold any number, which somebody has chosen. As nanoseconds these still fit into 64
 * bits, also in sums of some. */
#define MOST_TIME_MS (INT64_C(1) << 52) /* since 1970, or more than that */
#define MOST_SPAN_MS (INT64_C(1) << 41) /* 69 years */
#define MOST_TASKS INT32_MAX            /* of one call; the sum of any calls is a number, too */

/* ---- values ---- */

static bool is_array(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ARRAY;
}

static int bounded_at(const redisReply *reply, size_t index, int64_t most, int64_t *number)
{
    if (value_number_at(reply, index, number)) {
        return -1;
    }
    *number = *number < most ? *number : most;
    return 0;
}

static int time_at(const redisReply *reply, size_t index, int64_t *ms)
{
    return bounded_at(reply, index, MOST_TIME_MS, ms);
}

static int span_at(const redisReply *reply, size_t index, int64_t *ms)
{
    return bounded_at(reply, index, MOST_SPAN_MS, ms);
}

/* No library sends a shorter one, and in a part of a lease a worker has to reach Redis again. */
static int lease_at(const redisReply *reply, size_t index, int64_t *ms)
{
    int result = span_at(reply, index, ms);
    *ms = result == 0 && *ms < QUEUE_MIN_LEASE_MS ? QUEUE_MIN_LEASE_MS : *ms;
    return result;
}

static int flag_at(const redisReply *reply, size_t index, bool *flag)
{
    int64_t number = 0;
    if (value_number_at(reply, index, &number)) {
        return -1;
    }
    *flag = number != 0;
    return 0;
}

static bool are_tokens(const redisReply *list)
{
    bool fine = is_array(list);
    for (size_t i = 0; fine && i < list->elements; i++) {
        fine = task_is_token(list->element[i]);
    }
    return fine;
}

static int copy_text(char *to, size_t size, const char *text)
{
    size_t length = text ? strlen(text) : size;
    if (length >= size) {
        return -1;
    }
    memcpy(to, text, length + 1);
    return 0;
}

/* ---- claim ---- */

static int read_tasks(const redisReply *list, struct queue_claim_reply *out)
{
    if (!is_array(list)) {
        return value_malformed();
    }
    out->tasks = calloc(list->elements + 1, sizeof *out->tasks);
    if (!out->tasks) {
        return -1;
    }
    for (size_t i = 0; i < list->elements; i++) {
        out->tasks[i] = task_decode(list->element[i]);
        if (!out->tasks[i] && errno == EPROTO) {
            out->tasks[i] = task_decode_damaged(list->element[i]);
        }
        if (!out->tasks[i]) {
            return -1;
        }
        out->task_count++;
    }
    return 0;
}

static int read_deferred(const redisReply *list, struct queue_claim_reply *out)
{
    if (!are_tokens(list)) {
        return value_malformed();
    }
    out->deferred = calloc(list->elements + 1, sizeof *out->deferred);
    if (!out->deferred) {
        return -1;
    }
    for (size_t i = 0; i < list->elements; i++) {
        out->deferred[i] = strdup(list->element[i]->str);
        if (!out->deferred[i]) {
            return -1;
        }
        out->deferred_count++;
    }
    return 0;
}

/* The rows {token, causes, beside} stand in the order of the tasks. An older library sends none, or
 * none with `beside`: then tasks with crashes run alone. Returns 0, or -1 if they have another
 * form. */
static int read_causes(const redisReply *list, const struct queue_claim_reply *out)
{
    size_t count = is_array(list) ? list->elements : 0, next = 0;
    for (size_t i = 0; i < out->task_count && next < count; i++) {
        const char *token = value_text_at(list->element[next], 0);
        const char *causes = value_text_at(list->element[next], 1);
        const char *beside = value_text_at(list->element[next], 2);
        if (out->tasks[i] && token && causes && strcmp(out->tasks[i]->token, token) == 0) {
            task_note_ends(out->tasks[i], causes);
            out->tasks[i]->alone &= !beside || strcmp(beside, "1") != 0;
            next++;
        }
    }
    return next == count && (!list || is_array(list)) ? 0 : value_malformed();
}

/* The tokens stand in the order of the tasks. Returns 0, or -1 if the list has another form. */
static int read_unlaned(const redisReply *list, const struct queue_claim_reply *out)
{
    if (list && !value_are_texts(list)) {
        return value_malformed();
    }
    size_t count = list ? list->elements : 0, next = 0;
    for (size_t i = 0; i < out->task_count && next < count; i++) {
        if (out->tasks[i] && strcmp(out->tasks[i]->token, list->element[next]->str) == 0) {
            out->tasks[i]->unlaned = true;
            next++;
        }
    }
    return 0;
}

/* How long each task has waited: since it was enqueued, unless the list of token and time says
 * otherwise. Its tokens stand in the order of the tasks. Returns 0, or -1 if the list has another
 * form. */
static int read_waits(const redisReply *list, const struct queue_claim_reply *out)
{
    if (list && !value_are_texts(list)) {
        return value_malformed();
    }
    size_t count = list ? list->elements : 0, next = 0;
    for (size_t i = 0; i < out->task_count; i++) {
        struct task *task = out->tasks[i];
        int64_t since_ms = task->enqueued_ms;
        if (next + 1 < count && strcmp(task->token, list->element[next]->str) == 0) {
            since_ms = strtoll(list->element[next + 1]->str, NULL, 10);
            since_ms = since_ms > 0 ? since_ms : 0;
            next += 2;
        }
        task->waited_ms = since_ms < out->now_ms ? out->now_ms - since_ms : 0;
    }
    return 0;
}

int queue_claim_read(const redisReply *reply, struct queue_claim_reply *out)
{
    *out = (struct queue_claim_reply){0};
    if (!queue_speaks_protocol(reply) || time_at(reply, 1, &out->now_ms) ||
        lease_at(reply, 2, &out->lease_ms) || time_at(reply, 3, &out->closed_until_ms) ||
        !(out->why = value_text_at(reply, 4)) || time_at(reply, 5, &out->next_due_ms) ||
        copy_text(out->cursor, sizeof out->cursor, value_text_at(reply, 6)) ||
        !value_are_texts(value_at(reply, 9)) ||
        (value_at(reply, 12) && !are_tokens(value_at(reply, 12)))) {
        return value_malformed();
    }
    out->ended = value_at(reply, 9);
    out->reasons = value_at(reply, 11);
    out->unread = value_at(reply, 12);
    if (read_tasks(value_at(reply, 7), out) || read_deferred(value_at(reply, 8), out) ||
        read_causes(value_at(reply, 10), out) || read_unlaned(value_at(reply, 13), out) ||
        read_waits(value_at(reply, 14), out)) {
        queue_claim_reply_free(out); /* free() keeps errno */
        return -1;
    }
    return 0;
}

void queue_claim_reply_free(struct queue_claim_reply *out)
{
    for (size_t i = 0; i < out->task_count; i++) {
        task_free(out->tasks[i]);
    }
    free(out->tasks);
    for (size_t i = 0; i < out->deferred_count; i++) {
        free(out->deferred[i]);
    }
    free(out->deferred);
    *out = (struct queue_claim_reply){0};
}

/* ---- renew, register, finish, requeue ---- */

/* The part of the reply that both have. */
static int read_renewed(const redisReply *reply, struct queue_renew_reply *out)
{
    *out = (struct queue_renew_reply){0};
    out->lost = value_at(reply, 3);
    out->cancelled = value_at(reply, 4);
    if (!queue_speaks_protocol(reply) || time_at(reply, 1, &out->now_ms) ||
        lease_at(reply, 2, &out->lease_ms) || !value_are_texts(out->lost) ||
        !value_are_texts(out->cancelled)) {
        return value_malformed();
    }
    return 0;
}

int queue_renew_read(const redisReply *reply, struct queue_renew_reply *out)
{
    if (read_renewed(reply, out) || value_number_at(reply, 5, &out->dead_growth)) {
        return value_malformed();
    }
    out->ended = reply->elements > 6 ? value_at(reply, 6) : NULL;
    out->reasons = reply->elements > 7 ? value_at(reply, 7) : NULL;
    return out->ended && !value_are_texts(out->ended) ? value_malformed() : 0;
}

int queue_register_read(const redisReply *reply, struct queue_renew_reply *out)
{
    if (read_renewed(reply, out)) {
        return -1;
    }
    out->wakeup_id = value_text_at(reply, 6);
    out->settings = value_at(reply, 7);
    if (flag_at(reply, 5, &out->more) || !out->wakeup_id || !value_are_texts(out->settings) ||
        out->settings->elements % 2) {
        return value_malformed();
    }
    /* an older library sends none; one that was written by hand must not keep workers away */
    if (value_number_at(reply, 8, &out->joined)) {
        out->joined = 0;
    }
    out->followed = reply->elements > 9 ? value_at(reply, 9) : NULL;
    return out->followed && !value_are_texts(out->followed) ? value_malformed() : 0;
}

/* At most so long. A worker would otherwise send for as long as somebody writes into Redis. */
static int64_t follow_ms(const char *text)
{
    int64_t ms = (int64_t)strtoll(text, NULL, 10);
    return ms < QUEUE_FOLLOW_MOST_MS ? ms : QUEUE_FOLLOW_MOST_MS;
}

void queue_registered_followed(const struct queue_renew_reply *reply,
                               void (*entry)(void *context, const char *tid, int64_t for_ms),
                               void *context)
{
    const redisReply *followed = reply->followed;
    for (size_t i = 0; followed && i + 1 < followed->elements; i += 2) {
        int64_t for_ms = follow_ms(value_text_at(followed, i));
        if (for_ms > 0) {
            entry(context, value_text_at(followed, i + 1), for_ms);
        }
    }
}

int64_t queue_setting_number(const struct queue_renew_reply *reply, const char *name,
                             int64_t otherwise)
{
    int64_t number;
    for (size_t i = 0; i + 1 < reply->settings->elements; i += 2) {
        if (strcmp(reply->settings->element[i]->str, name) == 0 &&
            value_number_at(reply->settings, i + 1, &number) == 0) {
            return number;
        }
    }
    return otherwise;
}

int queue_finish_read(const redisReply *reply, size_t index, enum queue_settled *settled,
                      const char **error)
{
    static const struct {
        const char *name;
        enum queue_settled settled;
    } words[] = {
        {"ok", QUEUE_OK},     {"cancelled", QUEUE_CALLED_OFF}, {"fenced", QUEUE_FENCED},
        {"gone", QUEUE_GONE}, {"vanished", QUEUE_VANISHED},    {"later", QUEUE_LATER},
    };

    const char *text =
        queue_speaks_protocol(reply) && index < SIZE_MAX ? value_text_at(reply, index + 1) : NULL;
    if (!text) {
        return value_malformed();
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i].name) == 0) {
            *settled = words[i].settled;
            return 0;
        }
    }
    *settled = QUEUE_KEPT;
    *error = text;
    return 0;
}

int queue_report_read(const redisReply *reply, bool *known)
{
    return queue_speaks_protocol(reply) && !flag_at(reply, 1, known) ? 0 : value_malformed();
}

int queue_requeue_read(const redisReply *reply, struct queue_requeue_reply *out)
{
    out->ended = value_at(reply, 4);
    if (!queue_speaks_protocol(reply) || bounded_at(reply, 1, MOST_TASKS, &out->moved) ||
        flag_at(reply, 2, &out->more) || flag_at(reply, 3, &out->known) ||
        !value_are_texts(out->ended)) {
        return value_malformed();
    }
    return 0;
}

int queue_version_read(const redisReply *reply, int64_t *protocol, int64_t *version)
{
    if (value_number_at(reply, 0, protocol) || value_number_at(reply, 1, version)) {
        return value_malformed();
    }
    return 0;
}

/* [{library_name, NAME, …, library_code, CODE}, …] */
const redisReply *queue_library_code_read(const redisReply *reply)
{
    const redisReply *library = value_at(reply, 0);
    for (size_t i = 0; is_array(library) && i + 1 < library->elements; i += 2) {
        const char *name = value_text_at(library, i);
        if (name && strcmp(name, "library_code") == 0 && value_text_at(library, i + 1)) {
            return library->element[i + 1];
        }
    }
    return NULL;
}

/* ---- blocking reads: [[stream, [[id, fields], …]], …] or nil ---- */

enum { TOKEN_SIZE = QUEUE_CURSOR_SIZE };

/* The token of an entry: the kind and its id. */
static int entry_token(char kind, const redisReply *entry, char *token)
{
    token[0] = kind;
    return task_is_id(value_at(entry, 0))
               ? copy_text(token + 1, TOKEN_SIZE - 1, value_text_at(entry, 0))
               : -1;
}

static int stream_kind(const struct queue *queue, const char *stream, char *kind)
{
    if (!stream) {
        return -1;
    }
    if (strcmp(stream, queue->keys[QUEUE_KEY_GO]) == 0) {
        *kind = 'g';
        return 0;
    }
    *kind = 's';
    return strcmp(stream, queue->keys[QUEUE_KEY_STREAM]) == 0 ? 0 : -1;
}

/* Walks the entries. Without `entry` it only checks them, so that a malformed reply is not used in
 * part. */
static int walk_entries(const struct queue *queue, const redisReply *reply,
                        void (*entry)(void *context, const char *token), void *context)
{
    int count = 0;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *entries = value_at(value_at(reply, i), 1);
        char kind = 0;
        if (stream_kind(queue, value_text_at(value_at(reply, i), 0), &kind) || !is_array(entries)) {
            return -1;
        }
        for (size_t j = 0; j < entries->elements; j++) {
            char token[TOKEN_SIZE];
            if (entry_token(kind, entries->element[j], token)) {
                return -1;
            }
            if (entry) {
                entry(context, token);
            }
            count++;
        }
    }
    return count;
}

int queue_block_read(const struct queue *queue, const redisReply *reply,
                     void (*entry)(void *context, const char *token), void *context)
{
    if (reply && reply->type == REDIS_REPLY_NIL) {
        return 0;
    }
    if (!is_array(reply) || walk_entries(queue, reply, NULL, NULL) < 0) {
        return value_malformed();
    }
    return walk_entries(queue, reply, entry, context);
}

/* In a wakeup "follow MS TID": the tid, and MS in *for_ms. NULL: it is another one. */
static const char *followed_in(const char *why, int64_t *for_ms)
{
    static const char head[] = "follow ";
    if (!why || strncmp(why, head, sizeof head - 1) != 0) {
        return NULL;
    }
    const char *tid = strchr(why + sizeof head - 1, ' ');
    *for_ms = follow_ms(why + sizeof head - 1);
    return tid && *for_ms > 0 ? tid + 1 : NULL;
}

/* The reason in an entry. */
static const char *why_at(const redisReply *entries, size_t index)
{
    return value_text_at(value_at(value_at(entries, index), 1), 1);
}

/* The number of the newest worker in an entry, or 0. */
static int64_t joined_at(const redisReply *entries, size_t index)
{
    const char *joined = value_text_at(value_at(value_at(entries, index), 1), 3);
    return joined ? (int64_t)strtoll(joined, NULL, 10) : 0;
}

void queue_wakeup_followed(const struct queue_wakeup *wakeup,
                           void (*entry)(void *context, const char *tid, int64_t for_ms),
                           void *context)
{
    for (size_t i = 0; wakeup->entries && i < wakeup->entries->elements; i++) {
        int64_t for_ms;
        const char *tid = followed_in(why_at(wakeup->entries, i), &for_ms);
        if (tid) {
            entry(context, tid, for_ms);
        }
    }
}

static void read_rung(const redisReply *entries, struct queue_wakeup *wakeup)
{
    bool missed = entries->elements >= QUEUE_WAKEUPS_KEPT;
    *wakeup = (struct queue_wakeup){missed, missed, missed, missed, 0, entries};
    for (size_t i = 0; i < entries->elements; i++) {
        const char *why = why_at(entries, i);
        int64_t joined = joined_at(entries, i), for_ms;
        wakeup->joined = joined > wakeup->joined ? joined : wakeup->joined;
        if ((why && strncmp(why, "joined ", 7) == 0) || followed_in(why, &for_ms)) {
            continue;
        }
        bool cancel = why && strcmp(why, "cancel") == 0;
        bool task = why && (strcmp(why, "due") == 0 || strcmp(why, "lanes") == 0);
        bool known = task || (why && strcmp(why, "conf") == 0);
        wakeup->cancel = wakeup->cancel || cancel;
        wakeup->startable = wakeup->startable || !cancel;
        wakeup->settings = wakeup->settings || !(cancel || task);
        wakeup->pause = wakeup->pause || (!cancel && !known);
    }
}

int queue_listen_read(const redisReply *reply, char *id, size_t id_size,
                      struct queue_wakeup *wakeup)
{
    *wakeup = (struct queue_wakeup){0};
    if (reply && reply->type == REDIS_REPLY_NIL) {
        return 0;
    }
    const redisReply *entries = value_at(value_at(reply, 0), 1);
    if (!is_array(entries)) {
        return value_malformed();
    }
    if (entries->elements == 0) {
        return 0;
    }
    if (copy_text(id, id_size, value_text_at(entries->element[entries->elements - 1], 0))) {
        return value_malformed();
    }
    read_rung(entries, wakeup);
    return 1;
}

bool queue_speaks_protocol(const redisReply *reply)
{
    const redisReply *protocol = value_at(reply, 0);
    return protocol && protocol->type == REDIS_REPLY_INTEGER && protocol->integer == QUEUE_PROTOCOL;
}

void queue_explain(const redisReply *reply, char *why, size_t size)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_error_explain(reply->str, reply->len, why, size);
    } else {
        (void)snprintf(why, size,
                       "an answer in an unknown form; install the same version of leat "
                       "everywhere");
    }
}

/* ---- await ---- */

int64_t queue_await_expires_ms(const struct redisReply *reply, size_t count)
{
    int64_t ms = -1;
    return span_at(reply, 2 + count, &ms) == 0 ? ms : -1;
}
