/* A timer on an event loop, which calls a function with its context. */
#include "base/timer.h"

static void on_expired(struct ev_loop *loop, ev_timer *watcher, int events)
{
    const struct timer *timer = watcher->data;
    (void)loop;
    (void)events;
    if (timer->expired) {
        timer->expired(timer->context);
    }
}

void timer_init(struct timer *timer, struct ev_loop *loop, void (*expired)(void *context),
                void *context)
{
    *timer = (struct timer){.loop = loop, .expired = expired, .context = context};
    ev_timer_init(&timer->watcher, on_expired, 0., 0.);
    timer->watcher.data = timer;
}

static void start(struct timer *timer, double delay_s, double period_s)
{
    timer_stop(timer);
    ev_now_update(timer->loop); /* the time of the loop is that of its turn's begin */
    ev_timer_set(&timer->watcher, delay_s > 0 ? delay_s : 0., period_s);
    ev_timer_start(timer->loop, &timer->watcher);
}

void timer_start_s(struct timer *timer, double delay_s)
{
    start(timer, delay_s, 0.);
}

void timer_start_ms(struct timer *timer, int64_t delay_ms)
{
    start(timer, (double)delay_ms / 1e3, 0.);
}

void timer_start_ns(struct timer *timer, int64_t delay_ns)
{
    start(timer, (double)delay_ns / 1e9, 0.);
}

void timer_repeat_s(struct timer *timer, double period_s)
{
    start(timer, period_s, period_s);
}

void timer_stop(struct timer *timer)
{
    if (timer->loop) {
        ev_timer_stop(timer->loop, &timer->watcher);
    }
}

bool timer_runs(const struct timer *timer)
{
    return ev_is_active(&timer->watcher);
}
