/*
 * Asks with WAIT whether enough replicas have the outcomes, and logs when they have not.
 */
#include "daemon/report/replicas.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/units.h"
#include "queue/calls.h"
#include "queue/replies.h"

struct replicas {
    struct worker_context *worker;
    replicas_callback *answered;
    void *context;
    size_t tasks;  /* outcomes that wait for the question in flight; 0: there is none */
    bool outage;   /* the log says that replicas are too few */
    char why[512]; /* why Redis refused; "": it did not */
};

static void keep_refusal(struct replicas *replicas, const struct redisReply *reply)
{
    if (reply && reply->type == REDIS_REPLY_ERROR && !*replicas->why) {
        queue_explain(reply, replicas->why, sizeof replicas->why);
    }
}

/* ---- the answer ---- */

static void log_outage(struct replicas *replicas, int64_t have)
{
    char duration[48], what[640];
    units_format_duration(replicas->worker->config->redis.wait_timeout_ms, duration,
                          sizeof duration);
    /* a long refusal is truncated */
    if (*replicas->why) {
        (void)snprintf(what, sizeof what, "cannot ask replicas: %s", replicas->why);
    } else {
        (void)snprintf(what, sizeof what, "%lld of %lld replicas within %s", (long long)have,
                       (long long)replicas->worker->config->redis.wait_replicas, duration);
    }
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "replicas-short")};
    log_event(replicas->outage ? LOG_DEBUG : LOG_WARNING, LOG_ID_REPLICAS, fields, 1,
              "too few replicas have the outcomes of tasks: %s; after a failover these tasks may "
              "run again; they are counted as unreplicated",
              what);
    replicas->outage = true;
}

static void judge(struct replicas *replicas, int64_t have)
{
    if (*replicas->why || have < replicas->worker->config->redis.wait_replicas) {
        log_outage(replicas, have);
        queue_mark(&replicas->worker->command, replicas->worker->queue, QUEUE_UNREPLICATED,
                   (int64_t)replicas->tasks);
        /* a failure recovers */
        (void)session_send_replica_wait(replicas->worker->session, 0, NULL, NULL);
    } else if (replicas->outage) {
        struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "replicas-back")};
        log_event(LOG_INFO, LOG_ID_REPLICAS, fields, 1,
                  "enough replicas again: %lld have all outcomes", (long long)have);
        replicas->outage = false;
    }
}

/* ---- asking ---- */

static void on_marked(void *context, const struct redisReply *reply)
{
    keep_refusal(context, reply);
}

static void on_waited(void *context, const struct redisReply *reply)
{
    struct replicas *replicas = context;
    if (reply) {
        keep_refusal(replicas, reply);
        judge(replicas, reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0);
    }
    replicas->tasks = 0;
    replicas->answered(replicas->context, reply);
}

int replicas_ask(struct replicas *replicas, size_t tasks)
{
    struct worker_context *worker = replicas->worker;
    replicas->why[0] = '\0';
    queue_mark(&worker->command, worker->queue, QUEUE_WAITED, (int64_t)tasks);
    if (session_send_replica_wait(worker->session, 0, on_marked, replicas)) {
        return -1;
    }
    queue_wait_replicas(&worker->command, replicas->worker->config->redis.wait_replicas,
                        replicas->worker->config->redis.wait_timeout_ms);
    if (session_send_replica_wait(worker->session, replicas->worker->config->redis.wait_timeout_ms,
                                  on_waited, replicas)) {
        return -1;
    }
    replicas->tasks = tasks;
    return 0;
}

bool replicas_are_wanted(const struct replicas *replicas)
{
    return replicas->worker->config->redis.wait_replicas > 0;
}

bool replicas_are_asked(const struct replicas *replicas)
{
    return replicas->tasks > 0;
}

/* ---- creation ---- */

struct replicas *replicas_new(struct worker_context *worker, replicas_callback *answered,
                              void *context)
{
    struct replicas *replicas = calloc(1, sizeof *replicas);
    if (replicas) {
        *replicas = (struct replicas){.worker = worker, .answered = answered, .context = context};
    }
    return replicas;
}

void replicas_free(struct replicas *replicas)
{
    free(replicas);
}
