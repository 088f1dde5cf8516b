/*
 * Discovers producer lists by prefix: takes turns with the other workers of the queue and runs SCAN
 * in small steps.
 */
#include "daemon/lists/seek.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/timer.h"
#include "queue/lists.h"
#include "queue/replies.h"

#define IDLE_SHARE 4 /* a pause is this many times as long as the step before it */
#define LONGEST_PAUSE_S 1.0
#define JITTER 0.05 /* of the period, added to each wait for a turn */

struct seek {
    struct worker_context *worker;
    struct watch *watch;
    struct seek_events events;
    const char *prefix; /* NULL: stopped */
    int64_t period_ms;
    bool walking; /* a walk is under way */
    char cursor[QUEUE_CURSOR_SIZE];
    int64_t sent_ns;
    int64_t turn_ns; /* when Redis last recorded this worker's turn */
    struct timer next;
};

static void wait_s(struct seek *seek, double seconds)
{
    timer_start_s(&seek->next, seconds);
}

static void wait_period(struct seek *seek)
{
    seek->walking = false;
    wait_s(seek, (double)seek->period_ms / 1000);
}

/* Returns whether there is a reply that is not an error, and seek has not ended. */
static bool check(struct seek *seek, const struct redisReply *reply)
{
    if (!reply || !seek->prefix) {
        return false;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        wait_period(seek);
        seek->events.failed(seek->events.context, reply->str);
        return false;
    }
    return true;
}

static void send_command(struct seek *seek, connection_callback *callback)
{
    seek->sent_ns = clock_boot_ns();
    watch_send(seek->watch, callback, seek);
}

/* ---- a walk ---- */

static void found(void *context, struct bytes name)
{
    struct seek *seek = context;
    seek->events.found(seek->events.context, name);
}

static void on_step(void *context, const struct redisReply *reply)
{
    struct seek *seek = context;
    if (!check(seek, reply)) {
        return;
    }
    double taken = (double)(clock_boot_ns() - seek->sent_ns) / (double)CLOCK_NS_PER_S;
    if (queue_scan_lists_read(reply, seek->cursor, found, seek)) {
        watch_recover(seek->watch, "SCAN: unexpected reply");
    } else if (seek->cursor[0] == '0' && seek->cursor[1] == '\0') {
        wait_period(seek);
    } else {
        double pause = taken * IDLE_SHARE;
        wait_s(seek, pause < LONGEST_PAUSE_S ? pause : LONGEST_PAUSE_S);
    }
}

/* Renews this worker's turn, so that no other worker starts a walk beside a long one. */
static void keep_turn(struct seek *seek)
{
    int64_t now_ns = clock_boot_ns();
    if ((now_ns - seek->turn_ns) / CLOCK_NS_PER_MS > seek->period_ms / 2) {
        seek->turn_ns = now_ns;
        queue_lists_turn(&seek->worker->command, seek->worker->queue, seek->period_ms, true);
        send_command(seek, NULL);
    }
}

static void step(struct seek *seek)
{
    keep_turn(seek);
    queue_scan_lists(&seek->worker->command, seek->cursor, seek->prefix);
    send_command(seek, on_step);
}

/* ---- turns ---- */

static void on_turn(void *context, const struct redisReply *reply)
{
    struct seek *seek = context;
    int64_t wait_ms = 0;
    if (!check(seek, reply)) {
        return;
    }
    if (queue_lists_turn_read(reply, &wait_ms)) {
        watch_recover(seek->watch, "turn: unexpected reply");
    } else if (wait_ms > 0) {
        /* at most one period: another worker may have a longer one configured */
        wait_ms = wait_ms < seek->period_ms ? wait_ms : seek->period_ms;
        wait_s(seek, ((double)wait_ms + JITTER * drand48() * (double)seek->period_ms) / 1000);
    } else {
        seek->walking = true;
        seek->turn_ns = clock_boot_ns();
        (void)snprintf(seek->cursor, sizeof seek->cursor, "0");
        step(seek);
    }
}

static void ask_for_turn(struct seek *seek)
{
    queue_lists_turn(&seek->worker->command, seek->worker->queue, seek->period_ms, false);
    send_command(seek, on_turn);
}

static void on_next(void *context)
{
    struct seek *seek = context;
    if (seek->walking) {
        step(seek);
    } else {
        ask_for_turn(seek);
    }
}

/* ---- start, end, creation ---- */

void seek_begin(struct seek *seek, const char *prefix, int64_t period_ms)
{
    seek->prefix = prefix;
    seek->period_ms = period_ms;
    seek->walking = false;
    ask_for_turn(seek);
}

void seek_end(struct seek *seek)
{
    seek->prefix = NULL;
    timer_stop(&seek->next);
}

struct seek *seek_new(struct worker_context *worker, struct watch *watch,
                      const struct seek_events *events)
{
    struct seek *seek = calloc(1, sizeof *seek);
    if (seek) {
        seek->worker = worker;
        seek->watch = watch;
        seek->events = *events;
        timer_init(&seek->next, worker->loop, on_next, seek);
    }
    return seek;
}

void seek_free(struct seek *seek)
{
    if (seek) {
        seek_end(seek);
        free(seek);
    }
}
