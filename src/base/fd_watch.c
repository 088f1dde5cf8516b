/* Watches a descriptor, and restarts the watcher after a failure of epoll_ctl. */
#include "base/fd_watch.h"

#define AGAIN_S 0.1

static void on_io(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct fd_watch *watch = watcher->data;
    if (events & EV_ERROR) {
        ev_timer_set(&watch->again, AGAIN_S, 0.);
        ev_timer_start(loop, &watch->again);
        return;
    }
    watch->ready(watch->context);
}

static void on_again(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)events;
    struct fd_watch *watch = watcher->data;
    ev_io_start(loop, &watch->io);
}

void fd_watch_init(struct fd_watch *watch, void (*ready)(void *context), void *context)
{
    watch->ready = ready;
    watch->context = context;
    watch->paused = false;
    ev_init(&watch->io, on_io);
    ev_init(&watch->again, on_again);
    watch->io.data = watch->again.data = watch;
}

void fd_watch_start(struct fd_watch *watch, struct ev_loop *loop, int fd, int events)
{
    if (!ev_is_active(&watch->io) && !ev_is_active(&watch->again)) {
        if (!watch->paused) {
            ev_io_set(&watch->io, fd, events);
        }
        watch->paused = false;
        ev_io_start(loop, &watch->io);
    }
}

void fd_watch_pause(struct fd_watch *watch, struct ev_loop *loop)
{
    bool was_started = ev_is_active(&watch->io);
    fd_watch_stop(watch, loop);
    watch->paused = was_started;
}

void fd_watch_stop(struct fd_watch *watch, struct ev_loop *loop)
{
    watch->paused = false;
    ev_io_stop(loop, &watch->io);
    ev_timer_stop(loop, &watch->again);
}
