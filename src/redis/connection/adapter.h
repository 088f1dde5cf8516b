/*
 * Connects hiredis to the event loop, in place of its own adapter. That one hears nothing more once
 * epoll_ctl has failed, loses a command silently if version 0.14 has no memory for it, and keeps
 * the buffer of a large answer until the next one.
 *
 * hiredis aborts the process at a reply that answers no command, and at a message of an unknown
 * form. Here such a reply is an error of the connection, and so is one that is not bounded.
 */
#ifndef LEAT_REDIS_CONNECTION_ADAPTER_H
#define LEAT_REDIS_CONNECTION_ADAPTER_H

#include <hiredis/async.h>
#include <stddef.h>

#include "base/fd_watch.h"

/* All zero: attached to nothing. It must not move while it is attached. */
struct adapter {
    struct ev_loop *loop;
    redisAsyncContext *redis;
    struct fd_watch read, write;
    redisReplyObjectFunctions functions; /* of the reader: they check what hiredis does not */
    redisReplyObjectFunctions *makers;   /* hiredis's own */
    bool large;                          /* the reader's buffer is large and not freed yet */
    const char *refused;                 /* why a reply was refused, or NULL: the context has an
                                            error, too */
    bool broken; /* answers would reach the wrong callbacks: free the context, outside of its
                    callbacks */
};

/* Attaches it to a context that has a descriptor. */
void adapter_attach(struct adapter *adapter, struct ev_loop *loop, redisAsyncContext *redis);

/* To be called before freeing the context: hiredis may keep that for a while, and the adapter may
 * serve the next one meanwhile. */
void adapter_detach(struct adapter *adapter);

/* Queues a command. Returns 0; or -1 if hiredis has not taken all of it. `broken` is then set, and
 * all later commands fail, too. */
int adapter_send(struct adapter *adapter, redisCallbackFn *callback, const char *data, size_t size);

#endif
