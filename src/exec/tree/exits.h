/*
 * Watches for children that exit, and reaps those that nobody has started here.
 */
#ifndef LEAT_EXEC_TREE_EXITS_H
#define LEAT_EXEC_TREE_EXITS_H

#include <ev.h>
#include <signal.h>
#include <stdbool.h>

#include "base/signals.h"
#include "base/timer.h"

struct exits {
    struct signals signals;
    struct timer more; /* runs while exits are left for the next turn */
    bool (*exited)(void *context, const siginfo_t *exit);
    void *context;
};

#define EXITS_UNWATCHED ((struct exits){.signals = SIGNALS_CLOSED})

/* Calls `exited` from the loop for each child that has exited, before the child is reaped, so that
 * its pid is still its own. If `exited` reaps the child it returns true; otherwise the child is
 * reaped here. Returns 0, or -1 with errno. */
int exits_watch(struct exits *exits, struct ev_loop *loop,
                bool (*exited)(void *context, const siginfo_t *exit), void *context);

/* Stops watching. Does nothing if exits are not watched. */
void exits_stop(struct exits *exits);

#endif
