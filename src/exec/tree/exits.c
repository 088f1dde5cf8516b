/*
 * Waits for SIGCHLD, and hands exited children over in batches of limited time.
 */
#include "exec/tree/exits.h"

#include <stdint.h>
#include <sys/wait.h>

#include "base/clock.h"

enum { REAP_MS = 20 }; /* the longest time for exits before other events have their turn */

static void reap(struct exits *exits)
{
    int64_t end_ns = clock_boot_ns() + REAP_MS * CLOCK_NS_PER_MS;
    do {
        siginfo_t exit = {0};
        if (waitid(P_ALL, 0, &exit, WEXITED | WNOHANG | WNOWAIT) < 0 || exit.si_pid == 0) {
            return;
        }
        if (!exits->exited(exits->context, &exit)) {
            (void)waitpid(exit.si_pid, NULL, WNOHANG); /* it has exited: does not fail */
        }
    } while (clock_boot_ns() < end_ns);
    timer_start_ns(&exits->more, 0);
}

static void on_signal(void *context, const struct signalfd_siginfo *got)
{
    (void)got;
    struct exits *exits = context;
    if (!timer_runs(&exits->more)) {
        reap(exits);
    }
}

static void on_more(void *context)
{
    reap(context);
}

int exits_watch(struct exits *exits, struct ev_loop *loop,
                bool (*exited)(void *context, const siginfo_t *exit), void *context)
{
    sigset_t set;
    exits->exited = exited;
    exits->context = context;
    timer_init(&exits->more, loop, on_more, exits);
    return sigemptyset(&set) || sigaddset(&set, SIGCHLD)
               ? -1
               : signals_open(&exits->signals, loop, &set, on_signal, exits);
}

void exits_stop(struct exits *exits)
{
    signals_close(&exits->signals);
    timer_stop(&exits->more);
}
