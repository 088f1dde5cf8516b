/*
 * leat status: its problems and its output.
 */
#ifndef LEAT_CLI_STATUS_STATUS_H
#define LEAT_CLI_STATUS_STATUS_H

#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"
#include "cli/lib/output.h"
#include "view/status.h"

struct cli;
struct redisReply;

#define STATUS_EXIT_UNHEALTHY 1 /* exit status */

/* −1: no limit. */
struct status_limits {
    int64_t max_ready, max_oldest_ms, max_dead;
};

/* Calls leat_status. Returns its reply for freeReplyObject, or NULL after printing the error and
 * setting *status. */
struct redisReply *status_call(struct cli *cli, int *status);

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
