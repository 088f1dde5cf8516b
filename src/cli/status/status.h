/*
 * leat status: the reply of leat_status, as figures and workers, and its output.
 */
#ifndef LEAT_CLI_STATUS_STATUS_H
#define LEAT_CLI_STATUS_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"
#include "cli/lib/output.h"
#include "cli/lib/reply_fields.h"

struct cli;
struct redisReply;

#define STATUS_ELEMENTS 5       /* the least number of elements in the reply of leat_status */
#define STATUS_EXIT_UNHEALTHY 1 /* exit status */

/* The last heartbeat of a worker. A missing member is −1 or "". */
struct status_worker {
    char host[256], version[32], state[32];
    int64_t pid, slots, capacity, running, started_ms, succeeded, failed, cancelled, heartbeat_ms;
    int64_t kill_grace_ms;
    double rate;  /* tasks per second */
    bool live;    /* the heartbeat is younger than a lease */
    bool drained; /* its host is drained */
};

struct status {
    const struct redisReply *figures, *conf; /* point into the reply */
    int64_t now_ms, lease_ms;
    int64_t paused_ms;      /* since when; 0: not paused */
    struct bytes paused_by; /* "user@host", or empty */
    struct status_worker *workers;
    size_t worker_count, live_count;
    double rate; /* of all live workers */
};

/* −1: no limit. */
struct status_limits {
    int64_t max_ready, max_oldest_ms, max_dead;
};

/* Calls leat_status. Returns its reply for freeReplyObject, or NULL after printing the error and
 * setting *status. */
struct redisReply *status_call(struct cli *cli, int *status);

/* Reads a reply, which stays the caller's and must outlive the status. default_lease_ms applies
 * until a worker has stored a lease. Returns 0, or -1 without memory. */
int status_read(const struct redisReply *reply, int64_t default_lease_ms, struct status *status);
void status_free(struct status *status);

int64_t status_figure(const struct status *status, const char *name);

/* True if the worker reports that it can take no tasks until an operator solves a problem. */
bool status_is_disabled(const struct status_worker *worker);

/* Appends the problems, one per line; nothing if the queue is healthy. group: of the configuration.
 */
int status_problems(const struct status *status, const char *group,
                    const struct status_limits *limits, struct buffer *problems);

/* Appends the whole page of text. */
int status_render(const struct status *status, const struct buffer *problems, const char *title,
                  const struct output *output, struct buffer *out);

/* Returns a new reference, or NULL without memory. */
json_t *status_json(const struct status *status, const struct buffer *problems,
                    const char *queue_name);

#endif
