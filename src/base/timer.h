/*
 * A timer on an event loop, which calls a function with its context.
 */
#ifndef LEAT_BASE_TIMER_H
#define LEAT_BASE_TIMER_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

/* Must not move in memory while it runs. A zeroed timer may be stopped and asked, but not started.
 */
struct timer {
    ev_timer watcher;
    struct ev_loop *loop;
    void (*expired)(void *context);
    void *context;
};

/* expired may start and stop the timer, and may free the memory that contains it. NULL: the timer
 * only causes a turn of the loop. */
void timer_init(struct timer *timer, struct ev_loop *loop, void (*expired)(void *context),
                void *context);

/* Start the timer from now, or start it anew if it runs. It expires once, from the loop; a time
 * that is not above 0 means the next turn. */
void timer_start_s(struct timer *timer, double delay_s);
void timer_start_ms(struct timer *timer, int64_t delay_ms);
void timer_start_ns(struct timer *timer, int64_t delay_ns);

/* The same, but it expires again and again, each time after period_s. */
void timer_repeat_s(struct timer *timer, double period_s);

void timer_stop(struct timer *timer);

/* True if the timer was started and has not expired. */
bool timer_runs(const struct timer *timer);

#endif
