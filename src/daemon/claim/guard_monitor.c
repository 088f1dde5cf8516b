/*
 * Starts and replaces the guards, and creates the worker's lock file.
 */
#include "daemon/claim/guard_monitor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_watch.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/timer.h"
#include "exec/guard/guard.h"
#include "exec/guard/worker_lock.h"
#include "exec/guard/worker_locks.h"

#define READY_FIRST_MS 10000 /* how long the worker's start waits for its guards */
#define READY_S 0.5          /* how long a replacement may take before the host is closed */
#define RETRY_BASE_S 1.0     /* after a guard that could not be started; doubles up to the cap */
#define RETRY_CAP_S 60.0
#define STEADY_NS (10 * CLOCK_NS_PER_S) /* a guard that lived this long did not die early */
#define AT_ONCE 3 /* guards that died early, in a row, are replaced at once this many times */

struct watched_guard {
    struct guard_monitor *guard_monitor;
    size_t index;
    bool starting; /* and not ready yet */
    bool ready;
    bool missing;          /* logged as missing */
    int64_t ready_ns;      /* when it became ready; CLOCK_BOOTTIME */
    unsigned early_deaths; /* in a row */
    double retry_s;
    struct fd_watch messages;
    struct timer timer; /* the time to become ready, or until the next try */
};

struct guard_monitor {
    struct worker_context *worker;
    const struct isolation *isolation;
    struct host *host;
    struct guard *guard;
    struct worker_lock worker_lock;
    bool is_lock_lost;  /* and logged */
    bool is_unfiltered; /* some guard was; logged */
    bool stopped_clean;
    struct watched_guard guards[GUARD_COUNT];
};

static void start(struct watched_guard *watched);

static bool is_missing(const struct guard_monitor *guard_monitor)
{
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        if (guard_monitor->guards[index].missing) {
            return true;
        }
    }
    return false;
}

/* The guard could not be started, or is not ready in time: closes the host until all are. */
static void report_missing(struct watched_guard *watched, const char *why)
{
    struct guard_monitor *guard_monitor = watched->guard_monitor;
    log_event(LOG_ERR, LOG_ID_GUARD, NULL, 0,
              "no guard over running tasks: %s; claiming nothing, retrying in %.0f s", why,
              watched->retry_s);
    watched->missing = true;
    host_unguarded(guard_monitor->host, true);
    timer_start_s(&watched->timer, watched->retry_s);
    watched->retry_s = watched->retry_s * 2 < RETRY_CAP_S ? watched->retry_s * 2 : RETRY_CAP_S;
}

/* A guard works without its filter, for instance on a kernel without seccomp. */
static void note_filter(const struct watched_guard *watched)
{
    struct guard_monitor *guard_monitor = watched->guard_monitor;
    int error = guard_filter_error(guard_monitor->guard, watched->index);
    if (error && !guard_monitor->is_unfiltered) {
        guard_monitor->is_unfiltered = true;
        log_text(LOG_NOTICE, "guards run without their filter of system calls: %s",
                 strerror(error));
    }
}

static void set_ready(struct watched_guard *watched)
{
    struct guard_monitor *guard_monitor = watched->guard_monitor;
    if (watched->ready) {
        return;
    }
    timer_stop(&watched->timer);
    watched->ready = true;
    watched->ready_ns = clock_boot_ns();
    watched->starting = watched->missing = false;
    note_filter(watched);
    if (!is_missing(guard_monitor)) {
        host_unguarded(guard_monitor->host, false);
    }
}

static void listen_to(struct watched_guard *watched)
{
    struct guard_monitor *guard_monitor = watched->guard_monitor;
    fd_watch_stop(&watched->messages, guard_monitor->worker->loop);
    fd_watch_start(&watched->messages, guard_monitor->worker->loop,
                   guard_socket(guard_monitor->guard, watched->index), EV_READ);
}

static void start(struct watched_guard *watched)
{
    struct guard_monitor *guard_monitor = watched->guard_monitor;
    fd_watch_stop(&watched->messages,
                  guard_monitor->worker->loop); /* before its descriptor is closed */
    watched->ready = watched->starting = false;
    if (guard_start(guard_monitor->guard, watched->index)) {
        report_missing(watched, strerror(errno));
        return;
    }
    watched->starting = true;
    listen_to(watched);
    timer_start_s(&watched->timer, READY_S);
}

/* A guard that dies early is replaced at once only a few times; otherwise the daemon would do
 * nothing else. */
static void replace(struct watched_guard *watched)
{
    if (clock_boot_ns() - watched->ready_ns >= STEADY_NS) {
        watched->early_deaths = 0;
        watched->retry_s = RETRY_BASE_S;
    }
    if (watched->early_deaths < AT_ONCE) {
        watched->early_deaths++;
        log_event(LOG_WARNING, LOG_ID_GUARD, NULL, 0, "guard %zu died; starting another",
                  watched->index + 1);
        start(watched);
    } else {
        report_missing(watched, "it keeps dying");
    }
}

static void read_message(struct watched_guard *watched)
{
    struct guard_monitor *guard_monitor = watched->guard_monitor;
    bool was_ready = watched->ready;
    switch (guard_hear(guard_monitor->guard, watched->index)) {
    case GUARD_HEARD_NOTHING:
        return;
    case GUARD_HEARD_READY:
        set_ready(watched);
        return;
    case GUARD_HEARD_DEAD:
        break;
    }
    fd_watch_stop(&watched->messages, guard_monitor->worker->loop);
    timer_stop(&watched->timer);
    watched->starting = false;
    if (was_ready) {
        watched->ready = false;
        replace(watched);
    } else {
        report_missing(watched, "it exited before it was ready");
    }
}

static void on_message(void *context)
{
    struct watched_guard *watched = context;
    bool was_ready = watched->ready;
    read_message(watched);
    if (watched->ready && !was_ready) {
        log_event(LOG_NOTICE, LOG_ID_GUARD, NULL, 0, "guard %zu is ready", watched->index + 1);
    }
}

static void on_timer(void *context)
{
    struct watched_guard *watched = context;
    if (watched->starting) {
        /* on a slow machine it may still become ready before the next try */
        watched->starting = false;
        report_missing(watched, "it is slow to start");
    } else {
        start(watched);
    }
}

/* ---- creation and end ---- */

/* Waits until the guards are ready, so that they guard the worker's first task. */
static void await_guards(struct guard_monitor *guard_monitor)
{
    int64_t end_ns = clock_boot_ns() + READY_FIRST_MS * CLOCK_NS_PER_MS;
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        struct watched_guard *watched = &guard_monitor->guards[index];
        int64_t left_ms = (end_ns - clock_boot_ns()) / CLOCK_NS_PER_MS;
        struct pollfd socket = {.fd = guard_socket(guard_monitor->guard, index), .events = POLLIN};
        if (socket.fd >= 0 && poll(&socket, 1, left_ms > 0 ? (int)left_ms : 0) > 0) {
            read_message(watched);
        }
    }
}

static void create_worker_lock(struct guard_monitor *guard_monitor)
{
    const struct worker_context *worker = guard_monitor->worker;
    const struct config *config = worker->config;
    const char *cgroup = guard_monitor->isolation->hierarchy.name;
    char *folder = worker_locks_folder(config->isolation.state, config->queue.name);
    if (!folder ||
        worker_lock_make(&guard_monitor->worker_lock, folder, worker->consumer, cgroup)) {
        log_text(LOG_WARNING,
                 "%s: cannot create the worker's lock file: %s; if this worker dies, its tasks are "
                 "retried only when their leases expire; set [isolation] state to a folder that "
                 "leatd's user can write to",
                 folder ? folder : "state folder", strerror(errno));
    }
    free(folder);
}

struct guard_monitor *guard_monitor_new(struct worker_context *worker,
                                        const struct isolation *isolation, struct host *host,
                                        struct runner *runner)
{
    struct guard_monitor *guard_monitor = calloc(1, sizeof *guard_monitor);
    if (!guard_monitor) {
        return NULL;
    }
    guard_monitor->worker = worker;
    guard_monitor->host = host;
    guard_monitor->isolation = isolation;
    guard_monitor->worker_lock.fd = -1;
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        struct watched_guard *watched = &guard_monitor->guards[index];
        *watched = (struct watched_guard){
            .guard_monitor = guard_monitor, .index = index, .retry_s = RETRY_BASE_S};
        fd_watch_init(&watched->messages, on_message, watched);
        timer_init(&watched->timer, guard_monitor->worker->loop, on_timer, watched);
    }
    create_worker_lock(guard_monitor);
    guard_monitor->guard =
        guard_new(worker->config->queue.name, worker->consumer, guard_monitor->worker_lock.fd);
    if (!guard_monitor->guard) {
        guard_monitor_stop(guard_monitor, true);
        guard_monitor_free(guard_monitor);
        return NULL;
    }
    runner_set_guard(runner, guard_monitor->guard);
    return guard_monitor;
}

void guard_monitor_start(struct guard_monitor *guard_monitor)
{
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        start(&guard_monitor->guards[index]);
    }
    await_guards(guard_monitor);
}

bool guard_monitor_proves(const struct guard_monitor *guard_monitor, const char *cgroup)
{
    pid_t own[1 + GUARD_COUNT] = {getpid()};
    size_t count = 1;
    if (cgroup[0] == '\0' || strcmp(cgroup, guard_monitor->isolation->hierarchy.name) != 0) {
        return false;
    }
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        pid_t pid = guard_pid(guard_monitor->guard, index);
        if (pid > 0) {
            own[count++] = pid;
        }
    }
    return isolation_is_alone(guard_monitor->isolation, own, count);
}

void guard_monitor_check_lock(struct guard_monitor *guard_monitor)
{
    const struct worker_lock *lock = &guard_monitor->worker_lock;
    if (lock->fd < 0 || guard_monitor->is_lock_lost || worker_lock_is_in_place(lock)) {
        return;
    }
    guard_monitor->is_lock_lost = true;
    log_text(LOG_WARNING,
             "%s: the worker's lock file was removed or replaced: a program of the same user or of "
             "root did this, such as a task; if this worker dies, its tasks are retried only when "
             "their leases expire; see RIGHTS in leatd(8)",
             lock->path);
}

void guard_monitor_stop(struct guard_monitor *guard_monitor, bool clean)
{
    guard_monitor->stopped_clean = clean;
    if (!clean) {
        worker_lock_note_stop(&guard_monitor->worker_lock, guard_monitor->worker->consumer);
    }
}

void guard_monitor_free(struct guard_monitor *guard_monitor)
{
    if (!guard_monitor) {
        return;
    }
    int error = errno;
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        fd_watch_stop(&guard_monitor->guards[index].messages, guard_monitor->worker->loop);
        timer_stop(&guard_monitor->guards[index].timer);
    }
    bool leaves = guard_monitor->stopped_clean &&
                  (!guard_monitor->guard || !guard_is_needed(guard_monitor->guard));
    worker_lock_drop(&guard_monitor->worker_lock, leaves);
    if (leaves && guard_monitor->guard) {
        guard_leave(guard_monitor->guard);
    }
    guard_free(guard_monitor->guard);
    free(guard_monitor);
    errno = error;
}
