/*
 * The permission of Redis to start tasks, by its last reply to a claim. Redis may say no for a
 * time, or until an operator resumes the queue, which the wakeup stream announces.
 */
#ifndef LEAT_DAEMON_CLAIM_PAUSE_STATE_H
#define LEAT_DAEMON_CLAIM_PAUSE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/worker_context.h"
#include "queue/replies.h"

struct pause_state;

enum pause_kind {
    PAUSE_OPEN,
    PAUSE_HOLD,   /* the consumer group was lost: for one lease */
    PAUSE_OUTAGE, /* Redis may have forgotten claims: until all workers have returned, or a lease */
    PAUSE_PAUSED,
    PAUSE_DRAINED,
    PAUSE_RATE, /* the rate limit: until the next task may start */
};

/* reopened: called when the time is over. Returns NULL without memory. */
struct pause_state *pause_state_new(struct worker_context *worker, void (*reopened)(void *context),
                                    void *context);
void pause_state_free(struct pause_state *pause_state);

/* The session came up: open until a reply says otherwise. The session ended: the timer stops. */
void pause_state_up(struct pause_state *pause_state);
void pause_state_down(struct pause_state *pause_state);

bool pause_state_is_open(const struct pause_state *pause_state);

/* Returns what the last reply said. */
enum pause_kind pause_state_kind(const struct pause_state *pause_state);

/* Returns whether an operator has paused the queue or drained this host. */
bool pause_state_is_paused(const struct pause_state *pause_state);

/* A wakeup announced changed settings: the queue may be open. check: an operator has paused or
 * resumed it, so Redis must be asked even if there is no room for tasks; pause_state_checked says
 * that the question was sent. */
void pause_state_wakeup(struct pause_state *pause_state, bool check);
bool pause_state_wants_check(const struct pause_state *pause_state);
void pause_state_checked(struct pause_state *pause_state);

/* The number of wakeups so far; remember it with each claim. */
uint64_t pause_state_wakeups(const struct pause_state *pause_state);

/* Applies the reply to a claim, and logs changes. Returns false if the reply says no, but a wakeup
 * came after the claim was sent: the queue may have been resumed, and Redis must be asked again. */
bool pause_state_update(struct pause_state *pause_state, const struct queue_claim_reply *answer,
                        uint64_t sent_wakeups);

#endif
