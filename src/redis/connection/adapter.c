/* Connects hiredis to the event loop. */
#include "redis/connection/adapter.h"

#include <hiredis/hiredis.h>
#include <string.h>
#include <strings.h>

#include "redis/reply_bounds.h"

enum { LARGE = 128 * 1024, MESSAGE_PARTS = 3 };

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

/* hiredis asks for writability with each command, and no longer when the command is written, which
 * is mostly in the same turn of the loop. */
static void del_write(void *context)
{
    struct adapter *adapter = context;
    fd_watch_pause(&adapter->write, adapter->loop);
}

/* ---- checks what hiredis asserts, before it does, and what it does not bound ---- */

static bool ends_subscription(const char *text, size_t size)
{
    static const char word[] = "unsubscribe";
    size_t length = sizeof word - 1;
    return size >= length && strncasecmp(text + size - length, word, length) == 0;
}

/* Whether hiredis can take this part of a reply. The reply to a command may be anything. Without a
 * command that waits for one, only an error may come; or, on a connection with a subscription, an
 * array that begins with two strings. leat never unsubscribes, so no server has to confirm that. */
static bool is_expected(const redisReadTask *task, int type, size_t elements, const char *text,
                        size_t size)
{
    const struct adapter *adapter = task->privdata;
    const redisAsyncContext *redis = adapter->redis;
    if (redis->replies.head) {
        return true;
    }
    if (!task->parent) {
        return type == REDIS_REPLY_ERROR ||
               (redis->c.flags & REDIS_SUBSCRIBED && type == REDIS_REPLY_ARRAY &&
                elements >= MESSAGE_PARTS);
    }
    if (task->parent->parent || task->idx > 1) {
        return true;
    }
    return type == REDIS_REPLY_STRING && !(task->idx == 0 && ends_subscription(text, size));
}

/* Returns hiredis's functions, or NULL after noting that the part is refused. */
static const redisReplyObjectFunctions *makers_for(const redisReadTask *task, int type,
                                                   size_t elements, const char *text, size_t size)
{
    struct adapter *adapter = task->privdata;
    if (is_expected(task, type, elements, text, size)) {
        return adapter->makers;
    }
    adapter->refused = "a reply that answers no command";
    return NULL;
}

static void *create_string(const redisReadTask *task, char *text, size_t size)
{
    const redisReplyObjectFunctions *makers = makers_for(task, task->type, 0, text, size);
    return makers ? makers->createString(task, text, size) : NULL;
}

static void *create_array(const redisReadTask *task, reply_bounds_count elements)
{
    struct adapter *adapter = task->privdata;
    if (!reply_bounds_allow(task, elements)) {
        adapter->refused = REPLY_BOUNDS_WHY;
        return NULL;
    }
    const redisReplyObjectFunctions *makers =
        makers_for(task, task->type, (size_t)elements, NULL, 0);
    return makers ? makers->createArray(task, elements) : NULL;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    const redisReplyObjectFunctions *makers = makers_for(task, REDIS_REPLY_INTEGER, 0, NULL, 0);
    return makers ? makers->createInteger(task, value) : NULL;
}

static void *create_nil(const redisReadTask *task)
{
    const redisReplyObjectFunctions *makers = makers_for(task, REDIS_REPLY_NIL, 0, NULL, 0);
    return makers ? makers->createNil(task) : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *create_double(const redisReadTask *task, double value, char *text, size_t size)
{
    const redisReplyObjectFunctions *makers = makers_for(task, REDIS_REPLY_DOUBLE, 0, NULL, 0);
    return makers ? makers->createDouble(task, value, text, size) : NULL;
}

static void *create_bool(const redisReadTask *task, int value)
{
    const redisReplyObjectFunctions *makers = makers_for(task, REDIS_REPLY_BOOL, 0, NULL, 0);
    return makers ? makers->createBool(task, value) : NULL;
}
#endif

static void begin_checks(struct adapter *adapter)
{
    redisReader *reader = adapter->redis->c.reader;
    adapter->makers = reader->fn;
    adapter->functions = *reader->fn;
    adapter->functions.createString = create_string;
    adapter->functions.createArray = create_array;
    adapter->functions.createInteger = create_integer;
    adapter->functions.createNil = create_nil;
#if HIREDIS_MAJOR >= 1
    adapter->functions.createDouble = create_double;
    adapter->functions.createBool = create_bool;
#endif
    reader->fn = &adapter->functions;
    reader->privdata = adapter;
}

/* ---- events ---- */

/* hiredis is about to free the context. */
static void cleanup(void *context)
{
    struct adapter *adapter = context;
    fd_watch_stop(&adapter->read, adapter->loop);
    fd_watch_stop(&adapter->write, adapter->loop);
    adapter->redis->c.reader->fn = adapter->makers;
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
    adapter->refused = NULL;
    begin_checks(adapter);
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
