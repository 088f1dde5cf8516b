/*
 * The calls of the function library and a few plain commands beside them. Each call starts a new
 * `command` and leaves it ready for command_finish; queue/replies.h reads the answers. How a call
 * is sent, by the daemon's asynchronous connections or by the command's synchronous client, is not
 * known here.
 */
#ifndef LEAT_QUEUE_CALLS_H
#define LEAT_QUEUE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/keys.h"
#include "queue/shared/limits.h"
#include "queue/task.h"
#include "queue/verdict.h"
#include "redis/command.h"

#define QUEUE_FINISH_MAX QUEUE_PAGE /* attempts in one leat_finish */
#define QUEUE_ONCE_MAX QUEUE_PAGE   /* signatures in one leat_once */
#define QUEUE_CANCEL_MAX QUEUE_PAGE /* tasks in one leat_cancel */
#define QUEUE_NAMED_MAX QUEUE_CHUNK /* tokens in one leat_claim, and tasks that it claims */
#define QUEUE_SCAN_START "g0-0"

/* tokens: what a blocking read returned, or deferred ones; cursor "" for no scan. */
void queue_claim(struct command *command, const struct queue *queue, const char *consumer,
                 int64_t wanted, int64_t running, const char *cursor, const char *const *tokens,
                 size_t token_count);
void queue_renew(struct command *command, const struct queue *queue, const char *consumer,
                 const char *heartbeat, const char *const *tokens, size_t token_count);
/* Between two heartbeats: what has been counted since the last one. */
void queue_report(struct command *command, const struct queue *queue, const char *consumer,
                  const char *heartbeat);
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

struct queue_result {
    const char *token;
    enum verdict outcome;
    const char *cause;  /* "exit", "signal", "timeout", … "" for success and release */
    const char *status; /* exit code or signal name */
    const char *reason; /* for people */
    int64_t delay_ms;   /* until it may start again: for a retry, or for a release that waits */
    int64_t duration_us;
    struct bytes stdout_tail, stderr_tail;
    const char *usage;     /* what it used, "NAME NUMBER …"; "": unknown */
    bool again;            /* sent before, but the reply was lost */
    bool unclaimed;        /* a release: the worker has only read it, if it does not run it */
    int64_t result_ttl_ms; /* how long to keep the result; 0: as the task says */
    struct bytes history;  /* of a dead letter: its record, of queue/history_record.h */
};
/* Begin, then add up to QUEUE_FINISH_MAX results, then, if there are successes, the records of all
 * of them, one after the other. */
void queue_finish_begin(struct command *command, const struct queue *queue, const char *consumer);
void queue_finish_add(struct command *command, const struct queue_result *result);
void queue_finish_add_successes(struct command *command, struct bytes records);

/* Asks how many replicas have everything that Redis did so far. First send the mark, which counts
 * the tasks that wait, then the question, on the same connection; that connection answers nothing
 * else until then. If too few replicas have it, that is counted, too. */
#define QUEUE_WAITED "waited"
#define QUEUE_UNREPLICATED "unreplicated"
void queue_mark(struct command *command, const struct queue *queue, const char *counter,
                int64_t count);
void queue_wait_replicas(struct command *command, int64_t replicas, int64_t timeout_ms);

/* A write that changes nothing. While writes are paused, Redis executes neither it nor what follows
 * on the same connection. */
void queue_write_nothing(struct command *command, const struct queue *queue);

/* Requeues everything that is pending for the consumer and deletes the consumer. died: count
 * crashes. */
void queue_requeue(struct command *command, const struct queue *queue, const char *consumer,
                   bool died);

/* Takes up to `wanted` dead letters for the hook, with `wait_ms` for each. settled: "+ID" of a dead
 * letter whose hook has run, "-ID" of one whose hook another worker shall run. Read the reply with
 * dead_letter_read. */
void queue_tell(struct command *command, const struct queue *queue, int64_t wanted, int64_t wait_ms,
                char *const *settled, size_t settled_count);

/* XREADGROUP … BLOCK block_ms on go and the stream: up to count entries of whichever has some. */
void queue_block(struct command *command, const struct queue *queue, const char *consumer,
                 int64_t count, int64_t block_ms);
/* XREAD BLOCK block_ms on the wakeups after the given id. */
void queue_listen(struct command *command, const struct queue *queue, const char *wakeup_id,
                  int64_t block_ms);

void queue_version(struct command *command);
void queue_load_library(struct command *command, bool replace);
/* FUNCTION LIST with the code of the library leat. */
void queue_library_code(struct command *command);

/* Begin; then for each task queue_enqueue_task (due: "0", "+MS" or unix ms; the number of fields)
 * and as many queue_enqueue_field. */
void queue_enqueue_begin(struct command *command, const struct queue *queue);
void queue_enqueue_task(struct command *command, const char *due, size_t field_count);
void queue_enqueue_field(struct command *command, struct bytes name, struct bytes value);

/* Commands that show by their reply whether the user has a right, and have no effect: Redis checks
 * the rights before it refuses an argument. */
enum queue_probe {
    QUEUE_PROBE_READ,      /* the stream */
    QUEUE_PROBE_ADD,       /* entries to the stream */
    QUEUE_PROBE_LOAD,      /* functions */
    QUEUE_PROBE_CONFIGURE, /* the server */
};
void queue_probe(struct command *command, const struct queue *queue, enum queue_probe probe);

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
/* XRANGE of a dead letter, by the id of its entry. */
void queue_dead_entry(struct command *command, const struct queue *queue, const char *id);
void queue_show(struct command *command, const struct queue *queue, const char *tid,
                const char *cursor);
/* Asks what stops a "task", a "lane" or the "queue". name: of the task or lane, or nothing. */
void queue_ask_why(struct command *command, const struct queue *queue, const char *what,
                   struct bytes name);
/* The tasks whose ids begin with these digits. cursor: "" at first. */
void queue_match(struct command *command, const struct queue *queue, const char *digits,
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
/* Changes tasks that wait. Begin, then queue_change_field `fields` times, then queue_cancel_add for
 * up to QUEUE_CANCEL_MAX tasks. to: the queue that they go to; NULL: they stay. due: "" as before,
 * or as for queue_enqueue_task. value.data NULL: the tasks lose the field. */
void queue_change_begin(struct command *command, const struct queue *queue, const struct queue *to,
                        const char *due, size_t fields);
void queue_change_field(struct command *command, struct bytes name, struct bytes value);
/* Begin, then add for each task its place, its due time, the number of its values, and these. */
void queue_import_begin(struct command *command, const struct queue *queue);
/* Begin, then add up to QUEUE_NAMED_MAX tids or labels, or "*" for all tasks. For `ms` from now on
 * (0: no longer), their ends are published in the streams of queue/result_streams.h. */
void queue_await_begin(struct command *command, const struct queue *queue, int64_t ms);
void queue_await_add(struct command *command, const char *tid);
/* Asks the workers to send the live output of the task from now on, for `ms`. id: its tid or label.
 */
void queue_follow(struct command *command, const struct queue *queue, int64_t ms, const char *id);
/* Begin, then add up to QUEUE_NAMED_MAX tids: finds which are alive, or, with the other cursor,
 * which are dead letters. */
#define QUEUE_FIND_ALIVE "g0-0"
#define QUEUE_FIND_DEAD "d0-0"
void queue_find_begin(struct command *command, const struct queue *queue, const char *cursor);
void queue_find_add(struct command *command, const char *tid);
void queue_dead(struct command *command, const struct queue *queue, bool retry,
                const char *const *ids, size_t count);

/* leat_doctor: one page. cursor: QUEUE_DOCTOR_START, or the cursor of the last page. */
#define QUEUE_DOCTOR_START "start"
void queue_doctor(struct command *command, const struct queue *queue, struct bytes cursor);
/* Begin, then add up to QUEUE_PAGE findings, which are repaired if they still hold. */
void queue_repair_begin(struct command *command, const struct queue *queue);
void queue_repair_add(struct command *command, struct bytes kind, struct bytes subject);

#endif
