/*
 * The calls of the function library and a few plain commands beside them. Each call is built here
 * and its reply is read here. How it is sent, by the daemon's asynchronous connections or by the
 * command's synchronous client, is not known here.
 */
#ifndef LEAT_QUEUE_QUEUE_H
#define LEAT_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/task.h"
#include "redis/command.h"

struct redisReply;

#define QUEUE_PROTOCOL 1
#define QUEUE_KEYS 15
#define QUEUE_PRODUCER_KEYS 9
#define QUEUE_FINISH_MAX 100 /* attempts in one leat_finish */
#define QUEUE_ONCE_MAX 100   /* signatures in one leat_once */
#define QUEUE_CANCEL_MAX 100 /* tasks in one leat_cancel */
#define QUEUE_NAMED_MAX 1000 /* tokens in one leat_claim, and tasks that it claims */
#define QUEUE_SCAN_START "g0-0"
#define QUEUE_WAKEUPS_KEPT 16 /* wakeups that Redis keeps; older ones are gone */

/* Positions in the keys of struct queue, in the order of leat.lua. */
enum queue_key {
    QUEUE_KEY_STREAM,
    QUEUE_KEY_BELL,
    QUEUE_KEY_WAITING,
    QUEUE_KEY_DELAYED,
    QUEUE_KEY_NAMES,
    QUEUE_KEY_CONF,
    QUEUE_KEY_STATS,
    QUEUE_KEY_LANES,
    QUEUE_KEY_LANED,
    QUEUE_KEY_GO,
    QUEUE_KEY_RUNNING,
    QUEUE_KEY_DEAD,
    QUEUE_KEY_WORKERS,
    QUEUE_KEY_CANCEL,
    QUEUE_KEY_AWAITED,
};

/* The names of a queue's keys, and its group. */
struct queue {
    char *group;
    char *keys[QUEUE_KEYS];
};

/* Stream "emails" gives "{emails}:dead"; a stream with a {tag} gets suffixes only ("{a}b:dead").
 * Returns 0, or -1 if there is no memory. */
int queue_init(struct queue *queue, const char *stream, const char *group);
void queue_free(struct queue *queue);

/* ---- calls: each starts a new `command` and leaves it ready for command_finish ---- */

/* tokens: what a blocking read returned, or deferred ones; cursor "" for no scan. */
void queue_claim(struct command *command, const struct queue *queue, const char *consumer,
                 int64_t wanted, int64_t running, const char *cursor, const char *const *tokens,
                 size_t token_count);
void queue_renew(struct command *command, const struct queue *queue, const char *consumer,
                 const char *heartbeat, const char *const *tokens, size_t token_count);
/* A setting that the queue's conf gets if it does not have it. */
struct queue_default {
    const char *name, *value;
};
void queue_register(struct command *command, const struct queue *queue, const char *consumer,
                    const char *heartbeat, const struct queue_default *defaults,
                    size_t default_count, const char *const *tokens, size_t token_count);

/* Records valid signatures as used: each may run once. Begin, then add up to QUEUE_ONCE_MAX. mark
 * names the signature. */
void queue_once_begin(struct command *command, const struct queue *queue);
void queue_once_add(struct command *command, const struct task *task, struct bytes mark,
                    int64_t not_after_ms);

enum queue_outcome { QUEUE_SUCCESS, QUEUE_RETRY, QUEUE_DEAD, QUEUE_RELEASE, QUEUE_CANCELLED };
struct queue_result {
    const char *token;
    enum queue_outcome outcome;
    const char *cause;  /* "exit", "signal", "timeout", … "" for success and release */
    const char *status; /* exit code or signal name */
    const char *reason; /* for people */
    int64_t delay_ms;   /* until it may start again: for a retry, or for a release that waits */
    int64_t duration_us;
    struct bytes stdout_tail, stderr_tail;
    const char *usage;     /* what it used, "NAME NUMBER …"; "": unknown */
    bool again;            /* sent before, but the reply was lost */
    int64_t result_ttl_ms; /* how long to keep the result; 0: as the task says */
};
/* Begin, then add up to QUEUE_FINISH_MAX results. */
void queue_finish_begin(struct command *command, const struct queue *queue, const char *consumer);
void queue_finish_add(struct command *command, const struct queue_result *result);

/* Asks how many replicas have everything that Redis did so far. First send the mark, which counts
 * the tasks that wait, then the question, on the same connection; that connection answers nothing
 * else until then. If too few replicas have it, that is counted, too. */
#define QUEUE_WAITED "waited"
#define QUEUE_UNREPLICATED "unreplicated"
void queue_mark(struct command *command, const struct queue *queue, const char *counter,
                int64_t count);
void queue_wait_replicas(struct command *command, int64_t replicas, int64_t timeout_ms);

/* Requeues everything that is pending for the consumer and deletes the consumer. died: count
 * crashes. */
void queue_requeue(struct command *command, const struct queue *queue, const char *consumer,
                   bool died);

/* Takes up to `wanted` dead letters for the hook, with `wait_ms` for each. settled: "+ID" of a dead
 * letter whose hook has run, "-ID" of one whose hook another worker shall run. Read the reply with
 * dead_letter_read. */
void queue_tell(struct command *command, const struct queue *queue, int64_t wanted, int64_t wait_ms,
                char *const *settled, size_t settled_count);

/* XREADGROUP … BLOCK 0 on go and the stream: up to count entries of whichever has some. */
void queue_block(struct command *command, const struct queue *queue, const char *consumer,
                 int64_t count);
/* XREAD BLOCK 0 on the wakeups after the given id. */
void queue_listen(struct command *command, const struct queue *queue, const char *wakeup_id);

void queue_version(struct command *command);
void queue_load_library(struct command *command, bool replace);
/* FUNCTION LIST with the code of the library leat. */
void queue_library_code(struct command *command);

/* Begin; then for each task queue_enqueue_task (due: "0", "+MS" or unix ms; the number of fields)
 * and as many queue_enqueue_field. */
void queue_enqueue_begin(struct command *command, const struct queue *queue);
void queue_enqueue_task(struct command *command, const char *due, size_t field_count);
void queue_enqueue_field(struct command *command, struct bytes name, struct bytes value);

/* Operators' functions; see src/queue/lua. */
void queue_init_group(struct command *command, const struct queue *queue);
void queue_status(struct command *command, const struct queue *queue);
/* cursor: empty at first. */
void queue_lanes(struct command *command, const struct queue *queue, struct bytes cursor,
                 int64_t limit);
void queue_list(struct command *command, const struct queue *queue, const char *what,
                const char *cursor, int64_t limit, bool whole); /* whole: see leat_list */
/* XREVRANGE of the last dead letter: an array of at most one entry. */
void queue_dead_last(struct command *command, const struct queue *queue);
void queue_show(struct command *command, const struct queue *queue, const char *tid,
                const char *cursor);
void queue_conf(struct command *command, const struct queue *queue, const char *name,
                const char *value); /* name NULL: only read */
/* Pauses or drains (on), or ends that: "paused", "drain:HOST" or "drain:*". by: who does it, in at
 * most 100 bytes. */
void queue_pause(struct command *command, const struct queue *queue, const char *name, bool on,
                 const char *by);
/* Begin, then add up to QUEUE_CANCEL_MAX tasks. now: tell the workers at once. id: the tid or label
 * of the task. token: of the entry of go in which the task was seen, or "". */
void queue_cancel_begin(struct command *command, const struct queue *queue, bool now);
void queue_cancel_add(struct command *command, const char *id, const char *token);
/* Begin, then add up to QUEUE_NAMED_MAX tids or labels, or "*" for all tasks. For `ms` from now on
 * (0: no longer), their ends are published in the streams of queue/result_streams.h. */
void queue_await_begin(struct command *command, const struct queue *queue, int64_t ms);
void queue_await_add(struct command *command, const char *tid);
/* Begin, then add up to QUEUE_NAMED_MAX tids: finds which are alive, or, with the other cursor,
 * which are dead letters. */
#define QUEUE_FIND_ALIVE "g0-0"
#define QUEUE_FIND_DEAD "d0-0"
void queue_find_begin(struct command *command, const struct queue *queue, const char *cursor);
void queue_find_add(struct command *command, const char *tid);
void queue_dead(struct command *command, const struct queue *queue, bool retry,
                const char *const *ids, size_t count);

/* leat_doctor: one page. cursor: QUEUE_DOCTOR_START, QUEUE_DOCTOR_TIDS, or the cursor of the last
 * page. */
#define QUEUE_DOCTOR_START "start"
#define QUEUE_DOCTOR_TIDS "tids"
#define QUEUE_FINDINGS_MAX 100
void queue_doctor(struct command *command, const struct queue *queue, struct bytes cursor);
/* Begin, then add up to QUEUE_FINDINGS_MAX findings, to be checked again or repaired. read: the
 * cursor up to which the tasks in go were read. */
void queue_findings_begin(struct command *command, const struct queue *queue, bool repair,
                          struct bytes read);
void queue_findings_add(struct command *command, struct bytes kind, struct bytes subject,
                        struct bytes tid);

/* ---- replies: pure functions; −1: the reply does not have the expected form ---- */

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
    const char *why;         /* in the reply: "", "hold", "paused", "drained" or "rate" */
    int64_t next_due_ms;     /* 0: none */
    char cursor[QUEUE_CURSOR_SIZE];
    struct task **tasks; /* the receiver takes them: it sets to NULL those that it took */
    size_t task_count;
    char **deferred;
    size_t deferred_count;
    const struct redisReply *ended; /* in the reply: tid, cause, … of tasks that this call ended */
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
    bool more;                          /* from here on: register only */
    const char *wakeup_id;
    const struct redisReply *settings; /* array of texts: name and value of each setting in force */
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
    QUEUE_KEPT, /* an error kept this one as it is: send it again later */
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
};
/* Copies the last id of an XREAD reply to id. Returns 1 if there was one, 0 for nil, −1 if
 * malformed. */
int queue_listen_read(const struct redisReply *reply, char *id, size_t id_size,
                      struct queue_wakeup *wakeup);

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

#endif
