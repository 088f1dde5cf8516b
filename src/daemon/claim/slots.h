/*
 * The worker's slots: which begun task starts now, and how many more may be claimed. While tasks
 * are so short that a slot would idle between them, some more are claimed than there are slots for:
 * they wait here, begun, and start the moment a slot is free. What had to wait for HOLD_MS goes
 * back, so that an idle worker gets it, and then nothing is claimed ahead for a while.
 *
 * With batches a slot is a process for several tasks, and as many are claimed for it. They wait
 * until there is a full batch, or the first of them has waited for batch_wait. Tasks that must not
 * share a process (batch_may_share) start by themselves; where a claim brings more of those than
 * there are slots, most go back at once, and the next claims ask for less.
 */
#ifndef LEAT_DAEMON_CLAIM_SLOTS_H
#define LEAT_DAEMON_CLAIM_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/claim/host.h"
#include "daemon/claim/lease.h"
#include "exec/runner.h"

struct ev_loop;
struct queue;
struct session;
struct slots;

struct slots_events {
    /* Whether no task may start now at all. */
    bool (*closed)(void *context);
    /* So many more attempts begin: what becomes of them must find room. Returns 0, or -1 where it
     * would not. */
    int (*reserve)(void *context, size_t count);
    /* A task that cannot start here goes back; the token is to be copied. */
    void (*put_back)(void *context, const char *token);
    void *context;
};

/* All parts outlive it. Returns NULL without memory. */
struct slots *slots_new(struct ev_loop *loop, const struct config *config, struct runner *runner,
                        struct lease *lease, struct host *host, struct session *session,
                        const struct queue *queue, const struct slots_events *events);
/* What waits goes back where the new config judges tasks in another way. */
void slots_set_config(struct slots *slots, const struct config *config);

/* The queue's max_crashes, with each registration. Where it is 1, nothing is claimed ahead: a task
 * that waited here when the worker was lost would be a dead letter and never have run. */
void slots_set_max_crashes(struct slots *slots, int64_t max_crashes);
void slots_free(struct slots *slots);

/* How many more tasks may start now; and how many more may be claimed ahead of that. */
size_t slots_room(const struct slots *slots);
size_t slots_ahead(const struct slots *slots);

/* How many tasks may run at a time where nothing keeps them from it. */
size_t slots_most(const struct slots *slots);

/* Tasks that run or wait for a slot. */
size_t slots_taken(const struct slots *slots);

/* No slot suffers where results and the next claim wait for a moment: enough tasks wait, or run. */
bool slots_busy(const struct slots *slots);

/* Takes a begun task, whose claim was sent at sent_ns: starts it, keeps it for the next free slot,
 * or puts it back. */
void slots_take(struct slots *slots, struct task *task, int64_t sent_ns);

/* To be called with each attempt that has ended. */
void slots_ended(struct slots *slots, const struct attempt *attempt);

/* Once a turn: free slots go to those that wait. Where no task may start at all, they go back. */
void slots_turn(struct slots *slots);

/* Tokens of those that wait. */
void slots_tokens(const struct slots *slots, struct token_list *list);

/* Of those that wait, the lost are forgotten, and the cancelled go back: Redis then ends them. */
void slots_told(struct slots *slots, const struct token_set *lost,
                const struct token_set *cancelled);

/* No task may start any more, but those that run go on: what waits goes back. */
void slots_shut(struct slots *slots);

/* After the session's end: what waits is forgotten; the next registration does not name it, and so
 * it goes back with nothing counted. */
void slots_down(struct slots *slots);

#endif
