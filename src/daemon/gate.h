/*
 * The gate: whether Redis lets this worker start tasks, as far as known. Every claim answers it; it
 * may close for a time, or until an operator opens it, which the bell tells.
 */
#ifndef LEAT_DAEMON_GATE_H
#define LEAT_DAEMON_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/queue.h"

struct ev_loop;
struct gate;

enum gate_state {
    GATE_OPEN,
    GATE_HOLD, /* the group was lost: one lease */
    GATE_PAUSED,
    GATE_DRAINED,
    GATE_RATE, /* until the next task may start */
};

/* reopened: the time for which it was closed is over. Returns NULL without memory. */
struct gate *gate_new(struct ev_loop *loop, void (*reopened)(void *context), void *context);
void gate_free(struct gate *gate);

/* A session has begun: open until an answer says otherwise. And has ended: no time matters. */
void gate_up(struct gate *gate);
void gate_down(struct gate *gate);

bool gate_is_open(const struct gate *gate);

/* What the last answer said. */
enum gate_state gate_told(const struct gate *gate);

/* An operator has closed it. */
bool gate_is_shut(const struct gate *gate);

/* The bell rang for settings: it may be open. look: an operator has touched it, so that it is to be
 * asked for even where there is no room for tasks; gate_looking says that this has been sent. */
void gate_rang(struct gate *gate, bool look);
bool gate_wants_look(const struct gate *gate);
void gate_looking(struct gate *gate);

/* How often the bell has rung: to be remembered with each question. */
uint64_t gate_rings(const struct gate *gate);

/* Takes what a claim answered, and logs what changes. False where the gate was closed then, but the
 * bell has rung since the question was sent: it may have been opened again, and is to be asked
 * for. */
bool gate_take(struct gate *gate, const struct queue_claim_reply *answer, uint64_t sent_rings);

#endif
