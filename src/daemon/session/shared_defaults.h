/*
 * Settings that all workers of a queue share. A worker writes those of its config file into the
 * queue's conf if the name is not there yet; after that, conf counts.
 */
#ifndef LEAT_DAEMON_SESSION_SHARED_DEFAULTS_H
#define LEAT_DAEMON_SESSION_SHARED_DEFAULTS_H

#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"
#include "queue/calls.h"

struct redisReply;

struct shared_defaults {
    struct queue_default *list; /* owned, with names and values */
    size_t count;
};

/* Returns 0, or −1 without memory; then there is nothing to free. */
int shared_defaults_make(struct shared_defaults *shared_defaults, const struct config *config);
void shared_defaults_free(struct shared_defaults *shared_defaults);

/* settings: names and values from the reply to the registration. Appends "NAME VALUE (not OTHER)",
 * separated by commas, for each that differs from the config, as leat conf shows it. */
void shared_defaults_compare(const struct config *config, const struct redisReply *settings,
                             struct buffer *differences);

#endif
