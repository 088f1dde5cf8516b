/*
 * Reads replies of leat_status.
 */
#include "view/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <jansson.h>

#include "base/escape.h"
#include "view/reply_fields.h"

#define DRAIN_PREFIX "drain:"

/* Indexes of elements that replies of earlier libraries lack. */
#define STATUS_BUSY 5
#define STATUS_COUNTS 6

static void copy_text(const json_t *heartbeat, const char *name, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(heartbeat, name));

    if (value) {
        escape_copy(bytes_of(value), text, size);
    }
}

static int64_t number_of(const json_t *heartbeat, const char *name)
{
    const json_t *value = json_object_get(heartbeat, name);

    return json_is_integer(value) ? fields_bounded(json_integer_value(value)) : -1;
}

/* Reads host and pid from the consumer's name, host:pid:nonce. The heartbeat may lack them. */
static void read_consumer(struct bytes consumer, struct status_worker *worker)
{
    char name[256], *colon;

    bytes_copy(consumer, worker->consumer, sizeof worker->consumer);
    bytes_copy(consumer, name, sizeof name);
    colon = strchr(name, ':');
    if (colon) {
        *colon = '\0';
        worker->pid = fields_bounded(strtoll(colon + 1, NULL, 10));
    }
    escape_copy(bytes_of(name), worker->host, sizeof worker->host);
}

/* Parses "MS JSON", the time and the content of a heartbeat. */
static void read_worker(struct bytes consumer, struct bytes text, struct status_worker *worker)
{
    const char *blank = memchr(text.data, ' ', text.size);
    size_t time_size = blank ? (size_t)(blank - text.data) : text.size;
    char time[32];
    json_t *heartbeat = NULL;

    *worker = (struct status_worker){.pid = -1};
    read_consumer(consumer, worker);
    bytes_copy((struct bytes){text.data, time_size}, time, sizeof time);
    worker->heartbeat_ms = fields_bounded(strtoll(time, NULL, 10));
    if (blank) {
        heartbeat = json_loadb(blank + 1, text.size - time_size - 1, 0, NULL);
    }

    copy_text(heartbeat, "host", worker->host, sizeof worker->host);
    copy_text(heartbeat, "version", worker->version, sizeof worker->version);
    copy_text(heartbeat, "state", worker->state, sizeof worker->state);
    copy_text(heartbeat, "trouble", worker->trouble, sizeof worker->trouble);
    if (number_of(heartbeat, "pid") >= 0) {
        worker->pid = number_of(heartbeat, "pid");
    }
    worker->slots = number_of(heartbeat, "slots");
    worker->capacity = number_of(heartbeat, "capacity");
    if (worker->capacity < 0) {
        worker->capacity = worker->slots; /* the heartbeat of an earlier version */
    }
    worker->running = number_of(heartbeat, "running");
    worker->started_ms = number_of(heartbeat, "started_ms");
    worker->kill_grace_ms = number_of(heartbeat, "kill_grace_ms");
    worker->succeeded = number_of(heartbeat, "succeeded");
    worker->failed = number_of(heartbeat, "failed");
    if (number_of(heartbeat, "retried") >= 0 && number_of(heartbeat, "dead") >= 0) {
        worker->failed = number_of(heartbeat, "retried") + number_of(heartbeat, "dead");
    }
    worker->cancelled = number_of(heartbeat, "cancelled");
    worker->rate = json_number_value(json_object_get(heartbeat, "rate"));
    json_decref(heartbeat);
}

/* Looks for a drain of all hosts or of this one, which is the consumer's name without its last two
 * parts. */
static bool is_drained(const struct redisReply *conf, struct bytes consumer)
{
    char name[300] = "drain:", *colon;
    size_t prefix = strlen(name);

    if (fields_stamp(fields_bytes(conf, "drain:*"), NULL) > 0) {
        return true;
    }
    bytes_copy(consumer, name + prefix, sizeof name - prefix);
    for (int parts = 0; parts < 2; parts++) {
        colon = strrchr(name + prefix, ':');
        if (colon) {
            *colon = '\0';
        }
    }
    return fields_stamp(fields_bytes(conf, name), NULL) > 0;
}

static int compare_workers(const void *a, const void *b)
{
    const struct status_worker *x = a, *y = b;
    int hosts = strcmp(x->host, y->host);

    if (x->live != y->live) {
        return x->live ? -1 : 1;
    }
    return hosts != 0 ? hosts : (x->pid > y->pid) - (x->pid < y->pid);
}

/* The number of tasks that a worker runs now, or what its last heartbeat says if that is unknown.
 */
static int64_t running_now(const struct redisReply *reply, struct bytes consumer,
                           int64_t heartbeat_running)
{
    const struct redisReply *busy =
        reply->elements > STATUS_BUSY ? reply->element[STATUS_BUSY] : NULL;
    int64_t all = fields_number(reply->element[2], "running", 0);
    char name[300];

    /* the list is empty if the user lacks the right to read it */
    if (fields_count(busy) == 0 && all > 0) {
        return heartbeat_running;
    }
    bytes_copy(consumer, name, sizeof name);
    return busy ? fields_number(busy, name, 0) : heartbeat_running;
}

/* Workers note the totals now and then, so the difference to the earlier of the last two notes is
 * the rate of the last seconds: "MS SUCCEEDED FAILED". */
static void read_rate(struct status *status)
{
    struct bytes then = fields_bytes(status->counts, "m:then");
    char text[64], *at;
    int64_t then_ms, succeeded, failed;

    bytes_copy(then, text, sizeof text);
    then_ms = fields_bounded(strtoll(text, &at, 10));
    succeeded = status_figure(status, "total_succeeded") - fields_bounded(strtoll(at, &at, 10));
    failed = status_figure(status, "total_retried") + status_figure(status, "total_dead") -
             fields_bounded(strtoll(at, &at, 10));
    if (then_ms > 0 && then_ms <= status->now_ms && succeeded >= 0 && failed >= 0) {
        status->rate_ms = status->now_ms - then_ms > 1000 ? status->now_ms - then_ms : 1000;
        status->rate = (double)(succeeded + failed) * 1000 / (double)status->rate_ms;
        status->failure_rate = (double)failed * 1000 / (double)status->rate_ms;
    }
}

int status_read(const struct redisReply *reply, int64_t default_lease_ms, struct status *status)
{
    const struct redisReply *workers = reply->element[3];
    size_t count = fields_count(workers);

    *status = (struct status){
        .now_ms = fields_integer(reply->element[1], 0),
        .figures = reply->element[2],
        .conf = reply->element[4],
        .counts = reply->elements > STATUS_COUNTS ? reply->element[STATUS_COUNTS] : NULL,
    };
    status->lease_ms = fields_number(status->conf, "lease_ms", default_lease_ms);
    status->paused_ms = fields_stamp(fields_bytes(status->conf, "paused"), &status->paused_by);
    status->workers = calloc(count + 1, sizeof *status->workers);
    if (!status->workers) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        struct status_worker *worker = &status->workers[i];
        read_worker(fields_name_at(workers, i), fields_value(fields_value_at(workers, i)), worker);
        worker->running = running_now(reply, fields_name_at(workers, i), worker->running);
        worker->drained = is_drained(status->conf, fields_name_at(workers, i));
        worker->live = status->now_ms - worker->heartbeat_ms <= status->lease_ms;
        status->live_count += worker->live;
    }
    status->worker_count = count;
    read_rate(status);
    qsort(status->workers, count, sizeof *status->workers, compare_workers);
    return 0;
}

void status_free(struct status *status)
{
    free(status->workers);
    *status = (struct status){0};
}

int64_t status_figure(const struct status *status, const char *name)
{
    return fields_number(status->figures, name, 0);
}

bool status_is_disabled(const struct status_worker *worker)
{
    static const char *const states[] = {"host-fault", "lease-short", "outcome-kept"};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strcmp(worker->state, states[i]) == 0) {
            return true;
        }
    }
    return false;
}

void status_drained_host(const struct status *status, size_t index, char host[STATUS_DRAINED_SIZE])
{
    struct bytes name = fields_name_at(status->conf, index);
    size_t size = sizeof DRAIN_PREFIX - 1;
    bool drains = name.size > size && memcmp(name.data, DRAIN_PREFIX, size) == 0;

    escape_copy(drains ? (struct bytes){name.data + size, name.size - size} : (struct bytes){"", 0},
                host, STATUS_DRAINED_SIZE);
}
