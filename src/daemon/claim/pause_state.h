/*
 * The gate: whether Redis lets this worker start tasks, as far as known. Every claim answers it; it
 * may close for a time, or until an operator opens it, which the bell tells.
 */
#ifndef LEAT_DAEMON_CLAIM_PAUSE_STATE_H
#define LEAT_DAEMON_CLAIM_PAUSE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/queue.h"

struct ev_loop;
struct pause_state;

enum pause_kind {
    PAUSE_OPEN,
    PAUSE_HOLD, /* the group was lost: one lease */
    PAUSE_PAUSED,
    PAUSE_DRAINED,
    PAUSE_RATE, /* until the next task may start */
};

/* reopened: the time for which it was closed is over. Returns NULL without memory. */
struct pause_state *pause_state_new(struct ev_loop *loop, void (*reopened)(void *context),
                                    void *context);
void pause_state_free(struct pause_state *pause_state);

/* A session has begun: open until an answer says otherwise. And has ended: no time matters. */
void pause_state_up(struct pause_state *pause_state);
void pause_state_down(struct pause_state *pause_state);

bool pause_state_is_open(const struct pause_state *pause_state);

/* What the last answer said. */
enum pause_kind pause_state_told(const struct pause_state *pause_state);

/* An operator has closed it. */
bool pause_state_is_shut(const struct pause_state *pause_state);

/* The bell rang for settings: it may be open. look: an operator has touched it, so that it is to be
 * asked for even where there is no room for tasks; gate_looking says that this has been sent. */
void pause_state_rang(struct pause_state *pause_state, bool look);
bool pause_state_wants_look(const struct pause_state *pause_state);
void pause_state_looking(struct pause_state *pause_state);

/* How often the bell has rung: to be remembered with each question. */
uint64_t pause_state_rings(const struct pause_state *pause_state);

/* Takes what a claim answered, and logs what changes. False where the gate was closed then, but the
 * bell has rung since the question was sent: it may have been opened again, and is to be asked
 * for. */
bool pause_state_take(struct pause_state *pause_state, const struct queue_claim_reply *answer,
                      uint64_t sent_rings);

#endif
