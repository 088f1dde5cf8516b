/*
 * Receives signals on an event loop through a descriptor. libev's own signal watchers cannot be
 * restarted after epoll_ctl has failed.
 */
#ifndef LEAT_BASE_SIGNALS_H
#define LEAT_BASE_SIGNALS_H

#include <signal.h>
#include <sys/signalfd.h>

#include "base/fd_watch.h"

struct signals {
    struct ev_loop *loop;
    struct fd_watch watch;
    int fd; /* -1: closed */
    void (*heard)(void *context, const struct signalfd_siginfo *got);
    void *context;
};

#define SIGNALS_CLOSED ((struct signals){.fd = -1})

/* Blocks the signals and calls heard for each one that arrives. Returns 0, or -1 with errno. */
int signals_open(struct signals *signals, struct ev_loop *loop, const sigset_t *set,
                 void (*heard)(void *context, const struct signalfd_siginfo *got), void *context);

/* Stops receiving. The signals stay blocked, so later ones have no effect. Do not call this from
 * heard. */
void signals_close(struct signals *signals);

#endif
