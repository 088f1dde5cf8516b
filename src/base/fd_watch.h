/*
 * A descriptor on an event loop, watched on also where epoll_ctl fails: libev then stops for good
 * what watches that descriptor, and nothing would ever be heard of it again. Here it is started
 * once more a moment later; what is there waits in the descriptor.
 */
#ifndef LEAT_BASE_FD_WATCH_H
#define LEAT_BASE_FD_WATCH_H

#include <ev.h>
#include <stdbool.h>

/* What has to lie still while it is started. */
struct fd_watch {
    ev_io io;
    ev_timer again; /* after a failure */
    void (*ready)(void *context);
    void *context;
};

/* ready may start and stop it, and free what it is in. */
void fd_watch_init(struct fd_watch *watch, void (*ready)(void *context), void *context);

/* events: EV_READ or EV_WRITE. Does nothing where it is started. */
void fd_watch_start(struct fd_watch *watch, struct ev_loop *loop, int fd, int events);

/* Before the descriptor is closed. Does nothing where it is not started, or all zero. */
void fd_watch_stop(struct fd_watch *watch, struct ev_loop *loop);

#endif
