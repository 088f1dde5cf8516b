/*
 * The classes of Redis errors. Every error reply and every broken connection falls into one class;
 * the daemon treats each class in one way, and people get one piece of advice for it.
 */
#ifndef LEAT_REDIS_ERROR_H
#define LEAT_REDIS_ERROR_H

#include <stdbool.h>
#include <stddef.h>

struct redisReply;

enum redis_error {
    REDIS_ERROR_NONE,
    REDIS_ERROR_LOST,     /* connection refused, closed or timed out: reconnect with backoff */
    REDIS_ERROR_LATER,    /* LOADING, BUSY, MASTERDOWN, CLUSTERDOWN, TRYAGAIN, max clients: wait */
    REDIS_ERROR_ROLE,     /* READONLY, MOVED, ASK: another server has the queue: reconnect */
    REDIS_ERROR_NO_WRITE, /* OOM, MISCONF, NOREPLICAS: keep outcomes, wait */
    REDIS_ERROR_DENIED,   /* NOAUTH, WRONGPASS, NOPERM: an operator must act */
    REDIS_ERROR_NO_LOAD,  /* the same for the function library, which this user may not load */
    REDIS_ERROR_NO_GROUP, /* NOGROUP, UNBLOCKED: register again */
    REDIS_ERROR_NO_LIBRARY,  /* function not found: load it, register again */
    REDIS_ERROR_OLD_LIBRARY, /* an older library does not know the call */
    REDIS_ERROR_UNFIT,       /* unknown command: the server is too old, or not Redis */
    REDIS_ERROR_FOREIGN,     /* FOREIGN, WRONGTYPE: the keys belong to another program */
    REDIS_ERROR_CALLER,      /* REFUSED, BADARG, CROSSSLOT: the call itself was wrong or refused */
    REDIS_ERROR_FULL,        /* FULL: the queue is at its length limit */
    REDIS_ERROR_EXHAUSTED,   /* an entry has the greatest possible id: nothing can be added after it
                              */
    REDIS_ERROR_NO_MEMORY,   /* this process ran out of memory */
    REDIS_ERROR_OTHER,
};

/* message is the text of an error reply, with or without a leading "ERR ". */
enum redis_error redis_error_classify(const char *message, size_t size);

/* Finds the part of an error reply that people should read: without a leading "ERR ", "REFUSED " or
 * "FULL ", without the " script: NAME, on @user_function:LINE." that Redis adds, and without a full
 * stop. Sets *text to its beginning in message and returns its size. */
size_t redis_error_text(const char *message, size_t size, const char **text);

/* Classifies the reply to `what`: REDIS_ERROR_NONE if it can be used. malformed: what its reader
 * returned, 0 if it could read the reply. Writes "WHAT: TEXT" into why if it cannot. */
enum redis_error redis_error_of_reply(const struct redisReply *reply, int malformed,
                                      const char *what, char *why, size_t why_size);

/* The name of the class in logs ("refused-writes", …), and what an operator can do: static strings.
 * by_url: the server is that of --redis or LEAT_REDIS, not of [redis]. */
const char *redis_error_name(enum redis_error error);
const char *redis_error_advice(enum redis_error error, bool by_url);

/* Writes "TEXT; ADVICE" for an error reply, cut to fit. Refusals by the queue itself get no advice:
 * their text has it. */
void redis_error_explain(const char *message, size_t size, char *explained, size_t explained_size);

#endif
