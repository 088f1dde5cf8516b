/*
 * Asks several queues of /etc/leat side by side, so that one whose server hangs does not delay the
 * others.
 */
#ifndef LEAT_CLI_STATUS_ROUND_H
#define LEAT_CLI_STATUS_ROUND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"
#include "queue/keys.h"
#include "redis/command.h"
#include "redis/error.h"

struct redisReply;
struct round;

/* Loads the files of these queues. A file with errors is no failure. Returns NULL without memory.
 */
struct round *round_new(char *const *names, size_t count);

/* The configuration of a queue, or NULL; then *errors has what is wrong with its file, a line each.
 */
const struct config *round_config(const struct round *round, size_t index,
                                  const struct buffer **errors);

/* Writes the call for a queue. Returns false to leave the queue out. */
typedef bool round_question(void *context, size_t index, const struct queue *queue,
                            struct command *command);

/* reply is valid only during the call; it begins with the protocol of this version and has as many
 * elements as were demanded. NULL: error and why say the reason. */
typedef void round_answer(void *context, size_t index, const struct redisReply *reply,
                          enum redis_error error, const char *why);

/* Asks all queues that have a configuration, for two seconds each at most to connect and as long to
 * answer; returns when all have answered. elements: the least number in a reply. Returns 0, or -1
 * without memory. */
int round_ask(struct round *round, round_question *question, round_answer *answer, size_t elements,
              void *context);

/* NULL does nothing. */
void round_free(struct round *round);

#endif
