/*
 * What the config file would have all workers agree on: it goes into the queue's conf where that
 * has no such name yet; otherwise conf rules.
 */
#ifndef LEAT_DAEMON_SESSION_SHARED_DEFAULTS_H
#define LEAT_DAEMON_SESSION_SHARED_DEFAULTS_H

#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"
#include "queue/queue.h"

struct redisReply;

struct shared_defaults {
    struct queue_default *list; /* names and values are owned, too */
    size_t count;
};

/* Returns 0, or -1 without memory, with nothing to free. */
int shared_defaults_make(struct shared_defaults *shared_defaults, const struct config *config);
void shared_defaults_free(struct shared_defaults *shared_defaults);

/* ruling: the names and values that registering answered. Appends "NAME VALUE (not OTHER)", with
 * commas between, for each that is not what the config says; nothing where all are. */
void shared_defaults_compare(const struct config *config, const struct redisReply *settings,
                             struct buffer *differences);

#endif
