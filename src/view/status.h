/*
 * The state of a queue and of its workers, as leat_status and leat_explain answer it.
 */
#ifndef LEAT_VIEW_STATUS_H
#define LEAT_VIEW_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"
#include "view/reply_fields.h"

struct redisReply;

#define STATUS_ELEMENTS 5 /* the least number of elements in the reply */

/* The last heartbeat of a worker. A missing member is −1 or "". */
struct status_worker {
    char consumer[256], host[256], version[32], state[32];
    char trouble[256]; /* why it takes no tasks, for people */
    int64_t pid, slots, capacity, running, started_ms, succeeded, failed, cancelled, heartbeat_ms;
    int64_t kill_grace_ms;
    double rate;  /* tasks per second */
    bool live;    /* the heartbeat is younger than a lease */
    bool drained; /* its host is drained */
};

struct status {
    const struct redisReply *figures, *conf; /* point into the reply */
    const struct redisReply *counts;         /* the same; see view/histogram.h; may be NULL */
    int64_t now_ms, lease_ms;
    int64_t paused_ms;      /* since when; 0: not paused */
    struct bytes paused_by; /* "user@host", or empty */
    struct status_worker *workers;
    size_t worker_count, live_count;
    double rate;         /* attempts that ended per second, in the last rate_ms */
    double failure_rate; /* those of them that failed */
    int64_t rate_ms;     /* 0: unknown */
};

/* Reads a reply, which stays the caller's and must outlive the status. default_lease_ms applies
 * until a worker has stored a lease. Returns 0, or -1 without memory. */
int status_read(const struct redisReply *reply, int64_t default_lease_ms, struct status *status);
void status_free(struct status *status);

int64_t status_figure(const struct status *status, const char *name);

/* Writes the host that a setting drains, "*" for all, or "" if it is another setting. index: of a
 * member of conf. */
#define STATUS_DRAINED_SIZE 300
void status_drained_host(const struct status *status, size_t index, char host[STATUS_DRAINED_SIZE]);

/* True if the worker reports that it can take no tasks until an operator solves a problem. */
bool status_is_disabled(const struct status_worker *worker);

/* −1: no limit. */
struct status_limits {
    int64_t max_ready, max_oldest_ms, max_dead;
};

/* Appends the problems, one per line; nothing if the queue is healthy. group: of the configuration.
 */
int status_problems(const struct status *status, const char *group,
                    const struct status_limits *limits, struct buffer *problems);

/* As leat status --json has it. Returns a new reference, or NULL without memory. */
json_t *status_json(const struct status *status, const struct buffer *problems,
                    const char *queue_name);

#endif
