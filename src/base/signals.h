/*
 * Signals that an event loop hears through a descriptor. libev's own, which would be deaf for good
 * where epoll_ctl has failed, cannot be told to listen again.
 */
#ifndef LEAT_BASE_SIGNALS_H
#define LEAT_BASE_SIGNALS_H

#include <signal.h>

#include "base/fd_watch.h"

struct signals {
    struct ev_loop *loop;
    struct fd_watch watch;
    int fd; /* -1: closed */
    void (*heard)(void *context, int number);
    void *context;
};

#define SIGNALS_CLOSED ((struct signals){.fd = -1})

/* Blocks them from now on, and calls heard for each that comes. Returns 0, or -1 with errno. */
int signals_open(struct signals *signals, struct ev_loop *loop, const sigset_t *set,
                 void (*heard)(void *context, int number), void *context);

/* They stay blocked: what comes now changes nothing. Not from within heard. */
void signals_close(struct signals *signals);

#endif
