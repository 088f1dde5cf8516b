#include "daemon/slots.h"

#include <ev.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/record.h"

#define HOLD_MS 20         /* a task waits so long for a slot at the most */
#define EXPECTED_US 10000  /* and is claimed ahead where it should start within that */
#define SHORT_US 2000      /* tasks that take less on average are claimed ahead of free slots */
#define LEAST_AHEAD 16     /* so many at the most, or as many as there are slots */
#define AVERAGE_SHARE 8    /* the newest duration's share in the average: one in so many */
#define NO_TIME_US 1000000 /* what the average begins with, and after a task had to go back */

/* One that waits. */
struct waiting {
    struct task *task;
    int64_t sent_ns;  /* its claim */
    int64_t until_ns; /* then it goes back */
};

struct slots {
    struct ev_loop *loop;
    const struct config *config;
    struct runner *runner;
    struct lease *lease;
    const struct host *host;
    struct slots_events events;

    struct waiting *ring;
    size_t first, count, capacity;
    size_t alone; /* running tasks that want the worker for themselves: 0 or 1 */
    int64_t average_us;
    int64_t max_crashes;
    ev_timer hold; /* ends with the longest wait */
};

/* ---- how many ---- */

static size_t allowed(const struct slots *slots)
{
    if (slots->alone > 0 || slots->events.closed(slots->events.context)) {
        return 0;
    }
    return host_is_doubtful(slots->host) ? 1 : (size_t)slots->config->queue.concurrency;
}

size_t slots_taken(const struct slots *slots)
{
    return runner_count(slots->runner) + slots->count;
}

size_t slots_room(const struct slots *slots)
{
    size_t most = allowed(slots), taken = slots_taken(slots);
    return most > taken ? most - taken : 0;
}

static size_t most_ahead(const struct slots *slots)
{
    size_t concurrency = (size_t)slots->config->queue.concurrency;
    if (slots->average_us >= SHORT_US || slots->max_crashes <= 1 || allowed(slots) < concurrency) {
        return 0;
    }
    size_t in_time = concurrency * (size_t)(EXPECTED_US / (slots->average_us + 1));
    size_t most = concurrency > LEAST_AHEAD ? concurrency : LEAST_AHEAD;
    return in_time < most ? in_time : most;
}

size_t slots_ahead(const struct slots *slots)
{
    size_t most = most_ahead(slots);
    return most > slots->count ? most - slots->count : 0;
}

bool slots_busy(const struct slots *slots)
{
    size_t most = most_ahead(slots);
    return most > 0 ? slots->count > most / 2
                    : runner_count(slots->runner) > (size_t)slots->config->queue.concurrency / 2;
}

/* ---- starting ---- */

static void put_back(struct slots *slots, struct task *task)
{
    slots->events.put_back(slots->events.context, task->token);
    task_free(task);
}

static void start(struct slots *slots, struct task *task, int64_t sent_ns)
{
    int64_t deadline_ns = lease_deadline(slots->lease, sent_ns);
    bool alone = task->crashes > 0;
    char reason[160];
    if (!lease_has_room(slots->lease, deadline_ns)) {
        put_back(slots, task);
        return;
    }
    if (!task_check(task, slots->config->task.command != NULL, reason, sizeof reason)) {
        if (runner_refuse(slots->runner, task, reason)) {
            put_back(slots, task);
        }
        return;
    }
    if (slots->config->log.started) {
        record_started(task);
    }
    slots->alone += alone;
    if (runner_start(slots->runner, task, deadline_ns)) {
        slots->alone -= alone;
        put_back(slots, task);
    } else if (runner_first(slots->runner)) {
        lease_watch(slots->lease, runner_first(slots->runner));
    }
}

void slots_ended(struct slots *slots, const struct attempt *attempt)
{
    if (attempt->task->crashes > 0 && slots->alone > 0) {
        slots->alone--;
    }
    if (attempt->ending.cause == CAUSE_REFUSED || attempt->ending.cause == CAUSE_HOST) {
        return; /* never ran */
    }
    slots->average_us += (attempt->duration_us - slots->average_us) / AVERAGE_SHARE;
}

/* ---- waiting ---- */

static void set_hold(struct slots *slots)
{
    ev_timer_stop(slots->loop, &slots->hold);
    if (slots->count > 0) {
        int64_t left_ns = slots->ring[slots->first].until_ns - clock_boot_ns();
        ev_now_update(slots->loop);
        ev_timer_set(&slots->hold, left_ns > 0 ? (double)left_ns / CLOCK_NS_PER_S : 0., 0.);
        ev_timer_start(slots->loop, &slots->hold);
    }
}

static int grow(struct slots *slots)
{
    size_t capacity = slots->capacity ? slots->capacity * 2 : LEAST_AHEAD;
    struct waiting *ring = calloc(capacity, sizeof *ring);
    if (!ring) {
        return -1;
    }
    for (size_t i = 0; i < slots->count; i++) {
        ring[i] = slots->ring[(slots->first + i) % slots->capacity];
    }
    free(slots->ring);
    slots->ring = ring;
    slots->first = 0;
    slots->capacity = capacity;
    return 0;
}

static void keep(struct slots *slots, struct task *task, int64_t sent_ns)
{
    if (slots->count == slots->capacity && grow(slots)) {
        put_back(slots, task);
        return;
    }
    slots->ring[(slots->first + slots->count++) % slots->capacity] =
        (struct waiting){task, sent_ns, clock_boot_ns() + HOLD_MS * CLOCK_NS_PER_MS};
    if (!ev_is_active(&slots->hold)) {
        set_hold(slots);
    }
}

static struct waiting take_first(struct slots *slots)
{
    struct waiting waiting = slots->ring[slots->first];
    slots->first = (slots->first + 1) % slots->capacity;
    slots->count--;
    return waiting;
}

void slots_take(struct slots *slots, struct task *task, int64_t sent_ns)
{
    size_t most = allowed(slots);
    if (most == 0) {
        put_back(slots, task);
    } else if (slots->count > 0 || runner_count(slots->runner) >= most) {
        keep(slots, task, sent_ns);
    } else {
        start(slots, task, sent_ns);
    }
}

void slots_turn(struct slots *slots)
{
    while (slots->count > 0 && allowed(slots) == 0) {
        put_back(slots, take_first(slots).task);
    }
    while (slots->count > 0 && runner_count(slots->runner) < allowed(slots)) {
        struct waiting waiting = take_first(slots);
        start(slots, waiting.task, waiting.sent_ns);
    }
    if (slots->count == 0) {
        ev_timer_stop(slots->loop, &slots->hold);
    }
}

/* The timer is set to what waited first when it was started: that may have gone since. */
static void on_hold(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct slots *slots = watcher->data;
    int64_t now_ns = clock_boot_ns();
    while (slots->count > 0 && slots->ring[slots->first].until_ns <= now_ns) {
        put_back(slots, take_first(slots).task);
        slots->average_us = NO_TIME_US;
    }
    set_hold(slots);
}

void slots_down(struct slots *slots)
{
    while (slots->count > 0) {
        task_free(take_first(slots).task);
    }
    ev_timer_stop(slots->loop, &slots->hold);
}

/* ---- life ---- */

struct slots *slots_new(struct ev_loop *loop, const struct config *config, struct runner *runner,
                        struct lease *lease, const struct host *host,
                        const struct slots_events *events)
{
    struct slots *slots = calloc(1, sizeof *slots);
    if (slots) {
        slots->loop = loop;
        slots->config = config;
        slots->runner = runner;
        slots->lease = lease;
        slots->host = host;
        slots->events = *events;
        slots->average_us = NO_TIME_US;
        ev_timer_init(&slots->hold, on_hold, 0., 0.);
        slots->hold.data = slots;
    }
    return slots;
}

void slots_set_config(struct slots *slots, const struct config *config)
{
    slots->config = config;
}

void slots_set_max_crashes(struct slots *slots, int64_t max_crashes)
{
    slots->max_crashes = max_crashes;
}

void slots_free(struct slots *slots)
{
    if (slots) {
        slots_down(slots);
        free(slots->ring);
        free(slots);
    }
}
