/* Receives signals on an event loop, by signalfd(2). */
#include "base/signals.h"

#include <unistd.h>

static void on_readable(void *context)
{
    struct signals *signals = context;
    struct signalfd_siginfo got;
    while (read(signals->fd, &got, sizeof got) == (ssize_t)sizeof got) {
        signals->heard(signals->context, &got);
    }
}

int signals_open(struct signals *signals, struct ev_loop *loop, const sigset_t *set,
                 void (*heard)(void *context, const struct signalfd_siginfo *got), void *context)
{
    *signals = (struct signals){.loop = loop, .heard = heard, .context = context};
    /* block first, so that no signal is handled before the descriptor exists */
    int failed = sigprocmask(SIG_BLOCK, set, NULL);
    signals->fd = failed ? -1 : signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals->fd < 0) {
        return -1;
    }
    fd_watch_init(&signals->watch, on_readable, signals);
    fd_watch_start(&signals->watch, loop, signals->fd, EV_READ);
    return 0;
}

void signals_close(struct signals *signals)
{
    if (signals->fd >= 0) {
        fd_watch_stop(&signals->watch, signals->loop);
        close(signals->fd);
        signals->fd = -1;
    }
}
