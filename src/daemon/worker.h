/*
 * The worker: claims tasks while it has room, gives them to the runner, and sends their outcomes to
 * Redis. It connects the modules of the daemon, each of which has its own job, and decides when the
 * worker is stopped.
 */
#ifndef LEAT_DAEMON_WORKER_H
#define LEAT_DAEMON_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "config/config.h"
#include "daemon/claim/isolation.h"
#include "queue/verdict.h"

struct ev_loop;
struct worker;

struct worker_events {
    /* Called once: the worker has registered, or waits for a Redis that is away. */
    void (*started)(void *context);
    /* Called once: the worker has registered for the first time. */
    void (*ready)(void *context);
    /* Called at each heartbeat while the loop and Redis are well, or the log says that there is no
     * session. */
    void (*alive)(void *context);
    /* Every task was finished or returned to the queue, or the worker gave up, which the log says.
     * exit_code is one of sysexits. */
    void (*stopped)(void *context, int exit_code);
    void *context;
};

struct worker_figures {
    size_t running; /* tasks */
    size_t busy;    /* slots that run a process */
    size_t others;  /* slots in use by daemons of earlier programs, see worker_set_others */
    size_t slots;
    size_t batch;             /* tasks that may share a slot */
    uint64_t ended[VERDICTS]; /* attempts, by outcome */
    const char *state;        /* "running", "draining", … */
    const char *trouble;      /* "" or why nothing is claimed */
    bool connected;           /* if not, trouble is why, or "" before the first answer */
};

/* config must outlive the worker or be replaced. waits: the worker registers, but takes no tasks
 * until worker_go is called. nofile: the limit of open files that tasks get. isolation must outlive
 * the worker. watchdog_ms as in lease_new. Returns NULL with errno. */
struct worker *worker_new(struct ev_loop *loop, const struct config *config,
                          const struct rlimit *nofile, const struct isolation *isolation,
                          int64_t watchdog_ms, bool waits, const struct worker_events *events);
void worker_start(struct worker *worker);
void worker_go(struct worker *worker);

/* The queue's, as Redis said last; before that, the config's. */
int64_t worker_lease_ms(const struct worker *worker);

/* Takes a merged config; the old one may be freed afterwards. */
void worker_set_config(struct worker *worker, const struct config *config);

/* Claims no new tasks; running ones may finish until the drain time is over, then get SIGTERM,
 * kill_grace, SIGKILL. A second call ends the drain, a third one kills. */
void worker_stop(struct worker *worker);

/* Claims no new tasks, and stops when the running ones have ended, however long that takes, unless
 * worker_stop is called. To be called once, before worker_stop. */
void worker_retire(struct worker *worker);

/* Returns how many slots run a process; UINT32_MAX if a task runs alone, so that none may start
 * beside it. After worker_retire the number never grows. */
uint32_t worker_slots_used(const struct worker *worker);

/* Sets how many slots daemons of earlier programs use: this worker has only the others. */
void worker_set_others(struct worker *worker, uint32_t slots);

/* The main process of the service has ended, and the service manager kills all others, tasks first
 * perhaps: a KILL from an unknown sender is no failure of a task any more, and returns it. */
void worker_abandon(struct worker *worker);

/* Returns the longest time that stopping may take from now, in milliseconds. */
int64_t worker_stop_ms(const struct worker *worker);

struct worker_figures worker_figures(const struct worker *worker);

void worker_free(struct worker *worker);

#endif
