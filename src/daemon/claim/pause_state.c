/*
 * Tracks pauses, drains, rate limits and the hold after a lost consumer group.
 */
#include "daemon/claim/pause_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/timer.h"
#include "queue/replies.h"

struct pause_state {
    struct worker_context *worker;
    void (*reopened)(void *context);
    void *context;
    bool open, check;
    enum pause_kind kind;
    uint64_t wakeups;
    struct timer reopen;
};

static enum pause_kind kind_of(const char *why)
{
    static const char *const names[] = {
        [PAUSE_OPEN] = "",         [PAUSE_HOLD] = "hold",       [PAUSE_OUTAGE] = "outage",
        [PAUSE_PAUSED] = "paused", [PAUSE_DRAINED] = "drained", [PAUSE_RATE] = "rate",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(why, names[i]) == 0) {
            return (enum pause_kind)i;
        }
    }
    return PAUSE_RATE; /* the reason of a newer library; its reply says until when */
}

/* Rate limits come and go all the time and are not logged. */
static void log_change(enum pause_kind before, enum pause_kind now, int64_t closed_ms)
{
    if (now == PAUSE_HOLD) {
        log_event(LOG_WARNING, LOG_ID_GROUP_RECREATED, NULL, 0,
                  "the queue's consumer group was lost and recreated: its tasks may still run "
                  "elsewhere; claiming nothing for %.1f s",
                  (double)closed_ms / 1000);
    } else if (now == PAUSE_OUTAGE) {
        log_text(LOG_NOTICE,
                 "Redis was restarted or replaced: claiming nothing until all workers have "
                 "registered again, for %.1f s at most",
                 (double)closed_ms / 1000);
    } else if (now == PAUSE_PAUSED) {
        log_text(LOG_NOTICE, "the queue is paused: claiming nothing");
    } else if (now == PAUSE_DRAINED) {
        log_text(LOG_NOTICE, "this host is drained: claiming nothing");
    } else if (before == PAUSE_PAUSED || before == PAUSE_DRAINED) {
        log_text(LOG_NOTICE, "no longer paused or drained: claiming tasks again");
    }
}

static void set_reopen(struct pause_state *pause_state, int64_t ms)
{
    timer_start_ms(&pause_state->reopen, ms);
}

bool pause_state_update(struct pause_state *pause_state, const struct queue_claim_reply *answer,
                        uint64_t sent_wakeups)
{
    enum pause_kind before = pause_state->kind;
    int64_t closed_ms = answer->closed_until_ms - answer->now_ms;
    bool open = answer->closed_until_ms == 0;
    if (!open && sent_wakeups != pause_state->wakeups) {
        pause_state->check = true;
        return false;
    }
    pause_state->open = open;
    pause_state->kind = open ? PAUSE_OPEN : kind_of(answer->why);
    if (!open) {
        set_reopen(pause_state, closed_ms > 0 ? closed_ms : 0);
    }
    if (pause_state->kind != before) {
        log_change(before, pause_state->kind, closed_ms);
    }
    return true;
}

static void on_reopen(void *context)
{
    struct pause_state *pause_state = context;
    pause_state->open = true;
    pause_state->reopened(pause_state->context);
}

void pause_state_wakeup(struct pause_state *pause_state, bool check)
{
    pause_state->wakeups++;
    pause_state->open = true; /* if it is not, the next reply says so */
    pause_state->check = pause_state->check || check;
}

bool pause_state_wants_check(const struct pause_state *pause_state)
{
    return pause_state->check;
}

void pause_state_checked(struct pause_state *pause_state)
{
    pause_state->check = false;
}

uint64_t pause_state_wakeups(const struct pause_state *pause_state)
{
    return pause_state->wakeups;
}

bool pause_state_is_open(const struct pause_state *pause_state)
{
    return pause_state->open;
}

enum pause_kind pause_state_kind(const struct pause_state *pause_state)
{
    return pause_state->kind;
}

bool pause_state_is_paused(const struct pause_state *pause_state)
{
    return pause_state->kind == PAUSE_PAUSED || pause_state->kind == PAUSE_DRAINED;
}

void pause_state_up(struct pause_state *pause_state)
{
    pause_state->open = true;
}

void pause_state_down(struct pause_state *pause_state)
{
    timer_stop(&pause_state->reopen);
    pause_state->check = false;
}

struct pause_state *pause_state_new(struct worker_context *worker, void (*reopened)(void *context),
                                    void *context)
{
    struct pause_state *pause_state = calloc(1, sizeof *pause_state);
    if (pause_state) {
        pause_state->worker = worker;
        pause_state->reopened = reopened;
        pause_state->context = context;
        pause_state->open = true;
        timer_init(&pause_state->reopen, worker->loop, on_reopen, pause_state);
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
