/*
 * What the config file would have all workers agree on: it goes into the queue's conf where that
 * has no such name yet; otherwise conf rules.
 */
#ifndef LEAT_DAEMON_SEEDS_H
#define LEAT_DAEMON_SEEDS_H

#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"
#include "queue/queue.h"

struct redisReply;

struct seeds {
    struct queue_seed *list; /* names and values are owned, too */
    size_t count;
};

/* Returns 0, or -1 without memory, with nothing to free. */
int seeds_make(struct seeds *seeds, const struct config *config);
void seeds_free(struct seeds *seeds);

/* ruling: the names and values that registering answered. Appends "NAME VALUE (not OTHER)", with
 * commas between, for each that is not what the config says; nothing where all are. */
void seeds_compare(const struct config *config, const struct redisReply *ruling,
                   struct buffer *differences);

#endif
