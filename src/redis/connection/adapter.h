/*
 * Between hiredis and the event loop, and what it would not do itself: its own adapter is deaf for
 * good where epoll_ctl has failed, a command that version 0.14 has no memory for is lost without a
 * word, and the room that a large answer took is kept until the next one.
 */
#ifndef LEAT_REDIS_CONNECTION_ADAPTER_H
#define LEAT_REDIS_CONNECTION_ADAPTER_H

#include <hiredis/async.h>
#include <stddef.h>

#include "base/fd_watch.h"

/* All zero: attached to nothing. Lies still while it is attached. */
struct adapter {
    struct ev_loop *loop;
    redisAsyncContext *redis;
    struct fd_watch read, write;
    bool large;  /* the reader's buffer has become so, and is not empty or not given back yet */
    bool broken; /* answers would go astray: the context is to be freed, outside of its callbacks */
};

/* To a context that has a descriptor. */
void adapter_attach(struct adapter *adapter, struct ev_loop *loop, redisAsyncContext *redis);

/* Before the context is freed by us: hiredis may keep it for a while, and the adapter may meanwhile
 * serve the next. */
void adapter_detach(struct adapter *adapter);

/* Queues a command. Returns 0; or -1 where it was not taken, or not as a whole: then also all that
 * follow, and `broken` is set. */
int adapter_send(struct adapter *adapter, redisCallbackFn *callback, const char *data, size_t size);

#endif
