/*
 * Reads the answers to the calls of queue/calls.h: pure functions. −1: the reply does not have the
 * expected form.
 */
#ifndef LEAT_QUEUE_REPLIES_H
#define LEAT_QUEUE_REPLIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/keys.h"
#include "queue/task.h"

struct redisReply;

#define QUEUE_CURSOR_SIZE 48

/* Whether the reply begins with the protocol's number, as all replies of functions do that workers
 * and commands call. */
bool queue_speaks_protocol(const struct redisReply *reply);

/* Says for people what is wrong with a reply that could not be read, and what to do. A long text is
 * cut. */
void queue_explain(const struct redisReply *reply, char *why, size_t size);

struct queue_claim_reply {
    int64_t now_ms, lease_ms;
    int64_t closed_until_ms; /* 0: tasks may start */
    const char *why;         /* in the reply: "", "hold", "outage", "paused", "drained" or "rate" */
    int64_t next_due_ms;     /* 0: none */
    char cursor[QUEUE_CURSOR_SIZE];
    struct task **tasks; /* the receiver takes them: it sets to NULL those that it took */
    size_t task_count;
    char **deferred;
    size_t deferred_count;
    const struct redisReply *ended; /* in the reply: tid, cause, … of tasks that this call ended */
    const struct redisReply *reasons; /* in the reply: why, of each; NULL: an older library */
    const struct redisReply *unread;  /* in the reply: tokens to name again; NULL: none */
};
/* Returns 0; the caller then calls queue_claim_reply_free, which frees the tasks that are left. −1
 * (errno is EPROTO or ENOMEM) leaves nothing to free. */
int queue_claim_read(const struct redisReply *reply, struct queue_claim_reply *out);
void queue_claim_reply_free(struct queue_claim_reply *out);

/* The reply of renew and register. All except the numbers points into the reply. */
struct queue_renew_reply {
    int64_t now_ms, lease_ms;
    const struct redisReply *lost;      /* array of tokens */
    const struct redisReply *cancelled; /* array of tokens */
    int64_t dead_growth;                /* renew: how many dead letters to warn of; 0: none */
    const struct redisReply *ended;     /* renew: as in the reply of a claim; NULL: no task */
    const struct redisReply *reasons;   /* why, of each of these; NULL: unknown */
    bool more;                          /* from here on: register only */
    const char *wakeup_id;
    const struct redisReply *settings; /* array of texts: name and value of each setting in force */
    int64_t joined;                    /* the number of the newest worker; 0: unknown */
    const struct redisReply *followed; /* for queue_registered_followed; NULL: an older library */
};
int queue_renew_read(const struct redisReply *reply, struct queue_renew_reply *out);
int queue_register_read(const struct redisReply *reply, struct queue_renew_reply *out);
/* The number of a setting in force; `otherwise` if it is no number, or was damaged by hand. */
int64_t queue_setting_number(const struct queue_renew_reply *reply, const char *name,
                             int64_t otherwise);

/* The answer of leat_once for a task: it may run; another task has used its signature; the
 * signature is late, or valid for too long, by the clock of Redis; or a producer chose the id of
 * its entry. */
enum queue_once {
    QUEUE_ONCE_OK,
    QUEUE_ONCE_SEEN,
    QUEUE_ONCE_LATE,
    QUEUE_ONCE_FAR,
    QUEUE_ONCE_FORGED,
};

/* The answer for the task that was added at this index. *tid points into the reply: for
 * QUEUE_ONCE_SEEN the other task. Returns 0, or -1 if the reply has another form. */
int queue_once_read(const struct redisReply *reply, size_t index, enum queue_once *once,
                    const char **tid);

enum queue_settled {
    QUEUE_OK,
    QUEUE_CALLED_OFF, /* it did not succeed and was to be cancelled, so it has ended */
    QUEUE_FENCED,
    QUEUE_GONE,
    QUEUE_VANISHED,
    QUEUE_LATER, /* not looked at, since the tasks before it were very large: send it again */
    QUEUE_KEPT,  /* an error kept this one as it is: send it again later */
};
/* The answer at this index of a finish reply; *error gets the error's text for QUEUE_KEPT. −1:
 * malformed. */
int queue_finish_read(const struct redisReply *reply, size_t index, enum queue_settled *settled,
                      const char **error);

/* Calls `entry` with each token that a blocking read returned. Returns how many, 0 for nil, −1 if
 * malformed. */
int queue_block_read(const struct queue *queue, const struct redisReply *reply,
                     void (*entry)(void *context, const char *token), void *context);

/* The reasons of wakeups. An unknown reason, of an older or newer library, counts as all except a
 * cancel. If wakeups may have been missed, all count. */
struct queue_wakeup {
    bool startable; /* something may be startable that was not */
    bool settings;  /* settings have changed, so workers that wait shall ask again */
    bool pause;  /* an operator has paused, drained, or ended that; startable and settings are set,
                    too */
    bool cancel; /* a running task is to be ended at once */
    int64_t joined;                   /* the number of the newest worker; 0: no worker has come */
    const struct redisReply *entries; /* in the reply: for queue_wakeup_followed */
};
/* Copies the last id of an XREAD reply to id. Returns 1 if there was one, 0 for nil, −1 if
 * malformed. */
int queue_listen_read(const struct redisReply *reply, char *id, size_t id_size,
                      struct queue_wakeup *wakeup);

/* Call `entry` with each task that somebody follows for so long from now on. */
void queue_registered_followed(const struct queue_renew_reply *reply,
                               void (*entry)(void *context, const char *tid, int64_t for_ms),
                               void *context);
void queue_wakeup_followed(const struct queue_wakeup *wakeup,
                           void (*entry)(void *context, const char *tid, int64_t for_ms),
                           void *context);

/* known: Redis has a heartbeat of the worker, and has counted the figures. */
int queue_report_read(const struct redisReply *reply, bool *known);

struct queue_requeue_reply {
    int64_t moved;
    bool more;                      /* call again */
    bool known;                     /* the consumer had entries or a record */
    const struct redisReply *ended; /* in the reply, as in that of a claim */
};
int queue_requeue_read(const struct redisReply *reply, struct queue_requeue_reply *out);
/* The code in the reply of queue_library_code, or NULL if there is none. */
const struct redisReply *queue_library_code_read(const struct redisReply *reply);
int queue_version_read(const struct redisReply *reply, int64_t *protocol, int64_t *version);

/* Of the reply to queue_await_begin with `count` tasks: how long until the first of them that has
 * not started expires (ms), or -1 if none does. Call again then: it may be that nobody else ends
 * it. */
int64_t queue_await_expires_ms(const struct redisReply *reply, size_t count);

#endif
