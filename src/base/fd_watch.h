/*
 * Watches a descriptor on an event loop, even if epoll_ctl fails. libev stops a watcher for good
 * after such a failure. This one starts it again a moment later; the data waits in the descriptor.
 */
#ifndef LEAT_BASE_FD_WATCH_H
#define LEAT_BASE_FD_WATCH_H

#include <ev.h>
#include <stdbool.h>

/* Must not move in memory while it is started. */
struct fd_watch {
    ev_io io;
    ev_timer again; /* restarts io after a failure */
    bool paused;    /* io has the descriptor and the events of the next start */
    void (*ready)(void *context);
    void *context;
};

/* ready may start and stop the watch, and may free the memory that contains it. */
void fd_watch_init(struct fd_watch *watch, void (*ready)(void *context), void *context);

/* events: EV_READ or EV_WRITE. Does nothing if the watch is started. */
void fd_watch_start(struct fd_watch *watch, struct ev_loop *loop, int fd, int events);

/* Stops the watch of a descriptor that stays open. The next start must have the same descriptor and
 * events. If it comes in the same turn of the loop, neither costs a system call. */
void fd_watch_pause(struct fd_watch *watch, struct ev_loop *loop);

/* Call this before the descriptor is closed. Does nothing if the watch is not started, or all
 * zero. */
void fd_watch_stop(struct fd_watch *watch, struct ev_loop *loop);

#endif
