#include "daemon/gate.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/log_ids.h"

struct gate {
    struct ev_loop *loop;
    void (*reopened)(void *context);
    void *context;
    bool open, look;
    enum gate_state told;
    uint64_t rings;
    ev_timer reopen;
};

static enum gate_state state_of(const char *why)
{
    static const char *const names[] = {
        [GATE_OPEN] = "",           [GATE_HOLD] = "hold", [GATE_PAUSED] = "paused",
        [GATE_DRAINED] = "drained", [GATE_RATE] = "rate",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(why, names[i]) == 0) {
            return (enum gate_state)i;
        }
    }
    return GATE_RATE; /* a newer library's own reason: it says until when */
}

/* Rates close and open the gate all the time; the rest is worth a line. */
static void tell(enum gate_state before, enum gate_state now, int64_t closed_ms)
{
    if (now == GATE_HOLD) {
        log_event(LOG_WARNING, LOG_ID_GROUP_RECREATED, NULL, 0,
                  "the queue's group was lost and made anew: its tasks may still run elsewhere, "
                  "and none is started for %.1f s",
                  (double)closed_ms / 1000);
    } else if (now == GATE_PAUSED) {
        log_text(LOG_NOTICE, "the queue is paused: nothing more is started");
    } else if (now == GATE_DRAINED) {
        log_text(LOG_NOTICE, "this host is drained: nothing more is started here");
    } else if (before == GATE_PAUSED || before == GATE_DRAINED) {
        log_text(LOG_NOTICE, "tasks are started again");
    }
}

static void set_reopen(struct gate *gate, int64_t ms)
{
    ev_timer_stop(gate->loop, &gate->reopen);
    ev_now_update(gate->loop);
    ev_timer_set(&gate->reopen, (double)ms / 1000, 0.);
    ev_timer_start(gate->loop, &gate->reopen);
}

bool gate_take(struct gate *gate, const struct queue_claim_reply *answer, uint64_t sent_rings)
{
    enum gate_state before = gate->told;
    int64_t closed_ms = answer->closed_until_ms - answer->now_ms;
    bool open = answer->closed_until_ms == 0;
    if (!open && sent_rings != gate->rings) {
        gate->look = true;
        return false;
    }
    gate->open = open;
    gate->told = open ? GATE_OPEN : state_of(answer->why);
    if (!open) {
        set_reopen(gate, closed_ms > 0 ? closed_ms : 0);
    }
    if (gate->told != before) {
        tell(before, gate->told, closed_ms);
    }
    return true;
}

static void on_reopen(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct gate *gate = watcher->data;
    gate->open = true;
    gate->reopened(gate->context);
}

void gate_rang(struct gate *gate, bool look)
{
    gate->rings++;
    gate->open = true; /* if it is not, the next answer says so */
    gate->look = gate->look || look;
}

bool gate_wants_look(const struct gate *gate)
{
    return gate->look;
}

void gate_looking(struct gate *gate)
{
    gate->look = false;
}

uint64_t gate_rings(const struct gate *gate)
{
    return gate->rings;
}

bool gate_is_open(const struct gate *gate)
{
    return gate->open;
}

enum gate_state gate_told(const struct gate *gate)
{
    return gate->told;
}

bool gate_is_shut(const struct gate *gate)
{
    return gate->told == GATE_PAUSED || gate->told == GATE_DRAINED;
}

void gate_up(struct gate *gate)
{
    gate->open = true;
}

void gate_down(struct gate *gate)
{
    ev_timer_stop(gate->loop, &gate->reopen);
    gate->look = false;
}

struct gate *gate_new(struct ev_loop *loop, void (*reopened)(void *context), void *context)
{
    struct gate *gate = calloc(1, sizeof *gate);
    if (gate) {
        gate->loop = loop;
        gate->reopened = reopened;
        gate->context = context;
        gate->open = true;
        ev_timer_init(&gate->reopen, on_reopen, 0., 0.);
        gate->reopen.data = gate;
    }
    return gate;
}

void gate_free(struct gate *gate)
{
    if (gate) {
        gate_down(gate);
        free(gate);
    }
}
