/*
 * The worker: claims tasks while it has room, gives them to the runner, and tells Redis what became
 * of them. All decisions about taking and stopping are here; connections, leases and results have
 * their own modules.
 */
#ifndef LEAT_DAEMON_WORKER_H
#define LEAT_DAEMON_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "config/config.h"
#include "daemon/claim/isolation.h"

struct ev_loop;
struct worker;

struct worker_events {
    /* Once: registered, or known to wait for a Redis that is away. */
    void (*ready)(void *context);
    /* At each beat while loop and Redis are well, or an outage is declared. */
    void (*alive)(void *context);
    /* Everything is finished or handed back (or given up, which the log says); exit_code is of
     * sysexits. */
    void (*stopped)(void *context, int exit_code);
    void *context;
};

struct worker_figures {
    size_t running;
    size_t slots;
    uint64_t succeeded, retried, dead, released, cancelled;
    const char *state;   /* "running", "draining", … */
    const char *trouble; /* "" or why nothing is claimed */
};

/* config must outlive the worker or be replaced. nofile: the limit of open files that tasks get.
 * isolation must outlive the worker. watchdog_ms as in lease_new. Returns NULL with errno. */
struct worker *worker_new(struct ev_loop *loop, const struct config *config,
                          const struct rlimit *nofile, const struct isolation *isolation,
                          int64_t watchdog_ms, const struct worker_events *events);
void worker_start(struct worker *worker);

/* Takes a merged config; the old one may be freed afterwards. */
void worker_set_config(struct worker *worker, const struct config *config);

/* No new tasks; running ones may finish until the drain time is over, then TERM, grace, KILL.
 * Called again, it hastens: first ends the drain, then kills. */
void worker_stop(struct worker *worker);

/* Milliseconds that stopping may take at the most from now; for the service manager. */
int64_t worker_stop_ms(const struct worker *worker);

struct worker_figures worker_figures(const struct worker *worker);

void worker_free(struct worker *worker);

#endif
