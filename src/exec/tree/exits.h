/*
 * Hearing of children that have exited, and reaping those that nobody knows.
 */
#ifndef LEAT_EXEC_TREE_EXITS_H
#define LEAT_EXEC_TREE_EXITS_H

#include <ev.h>
#include <signal.h>
#include <stdbool.h>

#include "base/signals.h"

struct exits {
    struct ev_loop *loop;
    struct signals signals;
    ev_timer more; /* there are some that were not seen to yet */
    bool (*exited)(void *context, const siginfo_t *exit);
    void *context;
};

#define EXITS_UNWATCHED ((struct exits){.signals = SIGNALS_CLOSED})

/* From now on, and from the loop only: each child that has exited is told of before it is reaped,
 * so that its number still is its own. Where exited reaps it, it returns true; others are reaped
 * here. Returns 0, or -1 with errno. */
int exits_watch(struct exits *exits, struct ev_loop *loop,
                bool (*exited)(void *context, const siginfo_t *exit), void *context);

/* Does nothing where they are not watched. */
void exits_stop(struct exits *exits);

#endif
