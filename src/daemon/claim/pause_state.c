#include "daemon/claim/pause_state.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"

struct pause_state {
    struct ev_loop *loop;
    void (*reopened)(void *context);
    void *context;
    bool open, look;
    enum pause_kind told;
    uint64_t rings;
    ev_timer reopen;
};

static enum pause_kind state_of(const char *why)
{
    static const char *const names[] = {
        [PAUSE_OPEN] = "",           [PAUSE_HOLD] = "hold", [PAUSE_PAUSED] = "paused",
        [PAUSE_DRAINED] = "drained", [PAUSE_RATE] = "rate",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(why, names[i]) == 0) {
            return (enum pause_kind)i;
        }
    }
    return PAUSE_RATE; /* a newer library's own reason: it says until when */
}

/* Rates close and open the gate all the time; the rest is worth a line. */
static void tell(enum pause_kind before, enum pause_kind now, int64_t closed_ms)
{
    if (now == PAUSE_HOLD) {
        log_event(LOG_WARNING, LOG_ID_GROUP_RECREATED, NULL, 0,
                  "the queue's group was lost and made anew: its tasks may still run elsewhere, "
                  "and none is started for %.1f s",
                  (double)closed_ms / 1000);
    } else if (now == PAUSE_PAUSED) {
        log_text(LOG_NOTICE, "the queue is paused: nothing more is started");
    } else if (now == PAUSE_DRAINED) {
        log_text(LOG_NOTICE, "this host is drained: nothing more is started here");
    } else if (before == PAUSE_PAUSED || before == PAUSE_DRAINED) {
        log_text(LOG_NOTICE, "tasks are started again");
    }
}

static void set_reopen(struct pause_state *pause_state, int64_t ms)
{
    ev_timer_stop(pause_state->loop, &pause_state->reopen);
    ev_now_update(pause_state->loop);
    ev_timer_set(&pause_state->reopen, (double)ms / 1000, 0.);
    ev_timer_start(pause_state->loop, &pause_state->reopen);
}

bool pause_state_take(struct pause_state *pause_state, const struct queue_claim_reply *answer,
                      uint64_t sent_rings)
{
    enum pause_kind before = pause_state->told;
    int64_t closed_ms = answer->closed_until_ms - answer->now_ms;
    bool open = answer->closed_until_ms == 0;
    if (!open && sent_rings != pause_state->rings) {
        pause_state->look = true;
        return false;
    }
    pause_state->open = open;
    pause_state->told = open ? PAUSE_OPEN : state_of(answer->why);
    if (!open) {
        set_reopen(pause_state, closed_ms > 0 ? closed_ms : 0);
    }
    if (pause_state->told != before) {
        tell(before, pause_state->told, closed_ms);
    }
    return true;
}

static void on_reopen(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct pause_state *pause_state = watcher->data;
    pause_state->open = true;
    pause_state->reopened(pause_state->context);
}

void pause_state_rang(struct pause_state *pause_state, bool look)
{
    pause_state->rings++;
    pause_state->open = true; /* if it is not, the next answer says so */
    pause_state->look = pause_state->look || look;
}

bool pause_state_wants_look(const struct pause_state *pause_state)
{
    return pause_state->look;
}

void pause_state_looking(struct pause_state *pause_state)
{
    pause_state->look = false;
}

uint64_t pause_state_rings(const struct pause_state *pause_state)
{
    return pause_state->rings;
}

bool pause_state_is_open(const struct pause_state *pause_state)
{
    return pause_state->open;
}

enum pause_kind pause_state_told(const struct pause_state *pause_state)
{
    return pause_state->told;
}

bool pause_state_is_shut(const struct pause_state *pause_state)
{
    return pause_state->told == PAUSE_PAUSED || pause_state->told == PAUSE_DRAINED;
}

void pause_state_up(struct pause_state *pause_state)
{
    pause_state->open = true;
}

void pause_state_down(struct pause_state *pause_state)
{
    ev_timer_stop(pause_state->loop, &pause_state->reopen);
    pause_state->look = false;
}

struct pause_state *pause_state_new(struct ev_loop *loop, void (*reopened)(void *context),
                                    void *context)
{
    struct pause_state *pause_state = calloc(1, sizeof *pause_state);
    if (pause_state) {
        pause_state->loop = loop;
        pause_state->reopened = reopened;
        pause_state->context = context;
        pause_state->open = true;
        ev_timer_init(&pause_state->reopen, on_reopen, 0., 0.);
        pause_state->reopen.data = pause_state;
    }
    return pause_state;
}

void pause_state_free(struct pause_state *pause_state)
{
    if (pause_state) {
        pause_state_down(pause_state);
        free(pause_state);
    }
}
