/*
 * leat status: its output.
 */
#ifndef LEAT_CLI_STATUS_STATUS_H
#define LEAT_CLI_STATUS_STATUS_H

#include "base/buffer.h"
#include "cli/lib/output.h"
#include "view/status.h"

#define STATUS_EXIT_UNHEALTHY 1 /* exit status */

struct cli;
struct redisReply;

/* Calls leat_status. Returns its reply for freeReplyObject, or NULL after printing the error and
 * setting *status. */
struct redisReply *status_call(struct cli *cli, int *status);

/* Appends the whole page of text. */
int status_render(const struct status *status, const struct buffer *problems, const char *title,
                  const struct output *output, struct buffer *out);

#endif
