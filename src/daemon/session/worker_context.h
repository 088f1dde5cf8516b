/*
 * The state that the parts of a worker share, so that each fact is kept once. Clock and log need no
 * place here: they are functions without an object (base/clock.h, base/log). Calls of a part to its
 * owner stay callbacks of that part.
 */
#ifndef LEAT_DAEMON_SESSION_WORKER_CONTEXT_H
#define LEAT_DAEMON_SESSION_WORKER_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "queue/keys.h"
#include "redis/command.h"

struct ev_loop;
struct figures;
struct refusals;
struct session;

/* The worker owns it and creates it first; all that it points to outlives the parts. */
struct worker_context {
    struct ev_loop *loop;
    const struct config *config; /* the current one: parts read it anew each time */
    const struct queue *queue;
    const char *consumer;      /* this worker's name */
    struct session *session;   /* the sender of commands */
    struct refusals *refusals; /* sums up log records; NULL: none are */
    struct figures *figures;   /* for the next heartbeat; NULL: nothing is counted */
    struct command command;    /* the one that is built now; sending copies it */
    int64_t lease_ms;          /* the queue's, as Redis said last; before that, the config's */

    /* Whether the worker may claim and start tasks, as far as it does not depend on Redis. The
     * worker decides this once in each turn of the loop. A part that learns of an obstacle
     * meanwhile clears it, but only the worker sets it. */
    bool may_claim;

    /* Whether the worker waits until it may take over from another process. */
    bool waiting;

    /* How many slots other daemons of this service use, which run tasks of earlier programs. */
    uint32_t others;

    /* Whether leat_requeue of the own consumer is in flight, or has freed it before a move: Redis
     * would take a renewal for that of a new worker. */
    bool leaving;

    /* Whether the worker has to finish its tasks before it can move to a server with other data. */
    bool moving;
};

#endif
