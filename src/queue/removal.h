/*
 * Deletes the keys of a queue. They are unlinked at once, and Redis frees their memory beside other
 * work.
 */
#ifndef LEAT_QUEUE_REMOVAL_H
#define LEAT_QUEUE_REMOVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "queue/keys.h"
#include "redis/command.h"

/* UNLINK of the keys that every queue has, those of signatures, and the history: in one step, since
 * of what is added meanwhile either all keys must go or none. */
void removal_unlink(struct command *command, const struct queue *queue);

/* SCAN for results and live output. The reply is an array of the next cursor, "0" after the last
 * page, and an array of keys, of which only those are the queue's for which removal_is_kept. */
void removal_scan(struct command *command, const struct queue *queue, const char *cursor);
bool removal_is_kept(const struct queue *queue, struct bytes key);

/* Begins an UNLINK, to which the caller adds keys. */
void removal_unlink_begin(struct command *command);

#endif
