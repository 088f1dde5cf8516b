/* Connects hiredis to the event loop. */
#include "redis/connection/adapter.h"

#include <hiredis/hiredis.h>

enum { LARGE = 128 * 1024 };

static void add_read(void *context)
{
    struct adapter *adapter = context;
    fd_watch_start(&adapter->read, adapter->loop, adapter->redis->c.fd, EV_READ);
}

static void del_read(void *context)
{
    struct adapter *adapter = context;
    fd_watch_stop(&adapter->read, adapter->loop);
}

static void add_write(void *context)
{
    struct adapter *adapter = context;
    fd_watch_start(&adapter->write, adapter->loop, adapter->redis->c.fd, EV_WRITE);
}

static void del_write(void *context)
{
    struct adapter *adapter = context;
    fd_watch_stop(&adapter->write, adapter->loop);
}

/* hiredis is about to free the context. */
static void cleanup(void *context)
{
    struct adapter *adapter = context;
    del_read(adapter);
    del_write(adapter);
    adapter->redis = NULL;
    adapter->broken = false;
}

/* Frees the buffer that a large answer needed. hiredis would keep it until the next answer, which
 * in an idle queue may never come. */
static void give_back(struct adapter *adapter)
{
    redisReader *old = adapter->redis->c.reader, *fresh;
    adapter->large |= old->len > LARGE;
    if (!adapter->large || old->len > 0 || old->ridx >= 0) {
        return;
    }
    fresh = redisReaderCreateWithFunctions(old->fn);
    if (!fresh) {
        return; /* it is freed with the next answer */
    }
    fresh->privdata = old->privdata;
    adapter->redis->c.reader = fresh;
    redisReaderFree(old);
    adapter->large = false;
}

static void on_readable(void *context)
{
    struct adapter *adapter = context;
    redisAsyncHandleRead(adapter->redis);
    if (adapter->redis) {
        give_back(adapter);
    }
}

static void on_writable(void *context)
{
    struct adapter *adapter = context;
    redisAsyncHandleWrite(adapter->redis);
}

void adapter_attach(struct adapter *adapter, struct ev_loop *loop, redisAsyncContext *redis)
{
    adapter->loop = loop;
    adapter->redis = redis;
    adapter->large = false;
    fd_watch_init(&adapter->read, on_readable, adapter);
    fd_watch_init(&adapter->write, on_writable, adapter);
    redis->ev.addRead = add_read;
    redis->ev.delRead = del_read;
    redis->ev.addWrite = add_write;
    redis->ev.delWrite = del_write;
    redis->ev.cleanup = cleanup;
    redis->ev.data = adapter;
}

void adapter_detach(struct adapter *adapter)
{
    redisAsyncContext *redis = adapter->redis;
    if (redis) {
        cleanup(adapter);
        redis->ev.addRead = redis->ev.delRead = NULL;
        redis->ev.addWrite = redis->ev.delWrite = NULL;
        redis->ev.cleanup = NULL;
        redis->ev.data = NULL;
    }
}

int adapter_send(struct adapter *adapter, redisCallbackFn *callback, const char *data, size_t size)
{
    redisAsyncContext *redis = adapter->redis;
    const redisCallback *last = redis->replies.tail;
    if (adapter->broken ||
        redisAsyncFormattedCommand(redis, callback, NULL, data, size) != REDIS_OK) {
        return -1;
    }
    /* hiredis keeps callbacks of subscriptions elsewhere */
    bool noted = redis->replies.tail != last || (redis->c.flags & REDIS_SUBSCRIBED);
    adapter->broken = !noted || redis->c.err;
    return adapter->broken ? -1 : 0;
}
