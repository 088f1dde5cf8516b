#include "daemon/claim/guard_monitor.h"

#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_watch.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "exec/guard/guard.h"
#include "exec/guard/worker_lock.h"
#include "exec/guard/worker_locks.h"

#define READY_FIRST_MS 10000 /* how long the worker's start waits for its guards */
#define READY_S 0.5          /* how long one that is replaced may take before the host is closed */
#define RETRY_BASE_S 1.0     /* after a guard that could not be started; doubled up to the cap */
#define RETRY_CAP_S 60.0
#define STEADY_NS (10 * CLOCK_NS_PER_S) /* one that has lived so long was a good one */
#define AT_ONCE 3 /* so many are replaced at once, one after the other, that were none */

struct post { /* of one guard */
    struct guard_monitor *guard_monitor;
    size_t index;
    bool starting; /* and not ready yet */
    bool ready;
    bool told;        /* that it is missing */
    int64_t ready_ns; /* since then; CLOCK_BOOTTIME */
    unsigned hasty;   /* deaths soon after that, in a row */
    double retry_s;
    struct fd_watch heard;
    ev_timer late; /* until it must be ready, or is tried again */
};

struct guard_monitor {
    struct ev_loop *loop;
    const struct isolation *isolation;
    struct host *host;
    struct guard *guard;
    struct worker_lock worker_lock;
    bool parted;
    struct post posts[GUARD_COUNT];
};

static void start(struct post *post);

static void set_timer(struct post *post, double seconds)
{
    struct ev_loop *loop = post->guard_monitor->loop;
    ev_now_update(loop);
    ev_timer_stop(loop, &post->late);
    ev_timer_set(&post->late, seconds, 0.);
    ev_timer_start(loop, &post->late);
}

static bool is_missing(const struct guard_monitor *guard_monitor)
{
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        if (guard_monitor->posts[index].told) {
            return true;
        }
    }
    return false;
}

/* It could not be started, or does not do its work: no new tasks until there is one. */
static void miss(struct post *post, const char *why)
{
    struct guard_monitor *guard_monitor = post->guard_monitor;
    log_event(LOG_ERR, LOG_ID_GUARD, NULL, 0,
              "no guard over running tasks: %s; claiming nothing, trying again in %.0f s", why,
              post->retry_s);
    post->told = true;
    host_unguarded(guard_monitor->host, true);
    set_timer(post, post->retry_s);
    post->retry_s = post->retry_s * 2 < RETRY_CAP_S ? post->retry_s * 2 : RETRY_CAP_S;
}

static void be_ready(struct post *post)
{
    struct guard_monitor *guard_monitor = post->guard_monitor;
    if (post->ready) {
        return;
    }
    ev_timer_stop(guard_monitor->loop, &post->late);
    post->ready = true;
    post->ready_ns = clock_boot_ns();
    post->starting = post->told = false;
    if (!is_missing(guard_monitor)) {
        host_unguarded(guard_monitor->host, false);
    }
}

static void listen_to(struct post *post)
{
    struct guard_monitor *guard_monitor = post->guard_monitor;
    fd_watch_stop(&post->heard, guard_monitor->loop);
    fd_watch_start(&post->heard, guard_monitor->loop,
                   guard_socket(guard_monitor->guard, post->index), EV_READ);
}

static void start(struct post *post)
{
    struct guard_monitor *guard_monitor = post->guard_monitor;
    fd_watch_stop(&post->heard, guard_monitor->loop); /* before its descriptor is closed */
    post->ready = post->starting = false;
    if (guard_start(guard_monitor->guard, post->index)) {
        miss(post, strerror(errno));
        return;
    }
    post->starting = true;
    listen_to(post);
    set_timer(post, READY_S);
}

/* One that dies as soon as it does its work is started at once a few times only: else the daemon
 * would do nothing but that. */
static void replace(struct post *post)
{
    if (clock_boot_ns() - post->ready_ns >= STEADY_NS) {
        post->hasty = 0;
        post->retry_s = RETRY_BASE_S;
    }
    if (post->hasty < AT_ONCE) {
        post->hasty++;
        log_event(LOG_WARNING, LOG_ID_GUARD, NULL, 0, "guard %zu has died: starting another",
                  post->index + 1);
        start(post);
    } else {
        miss(post, "it dies again and again");
    }
}

static void hear(struct post *post)
{
    struct guard_monitor *guard_monitor = post->guard_monitor;
    bool was_ready = post->ready;
    switch (guard_hear(guard_monitor->guard, post->index)) {
    case GUARD_HEARD_NOTHING:
        return;
    case GUARD_HEARD_READY:
        be_ready(post);
        return;
    case GUARD_HEARD_DEAD:
        break;
    }
    fd_watch_stop(&post->heard, guard_monitor->loop);
    ev_timer_stop(guard_monitor->loop, &post->late);
    post->starting = false;
    if (was_ready) {
        post->ready = false;
        replace(post);
    } else {
        miss(post, "it ended before it did its work");
    }
}

static void on_heard(void *context)
{
    struct post *post = context;
    bool was_ready = post->ready;
    hear(post);
    if (post->ready && !was_ready) {
        log_event(LOG_NOTICE, LOG_ID_GUARD, NULL, 0, "guard %zu does its work", post->index + 1);
    }
}

static void on_late(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct post *post = watcher->data;
    if (post->starting) {
        /* on a slow machine it may come yet, until the next is tried */
        post->starting = false;
        miss(post, "it takes long to begin");
    } else {
        start(post);
    }
}

/* ---- life ---- */

/* A worker whose guards are there from its first task on. */
static void await_guards(struct guard_monitor *guard_monitor)
{
    int64_t end_ns = clock_boot_ns() + READY_FIRST_MS * CLOCK_NS_PER_MS;
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        struct post *post = &guard_monitor->posts[index];
        int64_t left_ms = (end_ns - clock_boot_ns()) / CLOCK_NS_PER_MS;
        struct pollfd socket = {.fd = guard_socket(guard_monitor->guard, index), .events = POLLIN};
        if (socket.fd >= 0 && poll(&socket, 1, left_ms > 0 ? (int)left_ms : 0) > 0) {
            hear(post);
        }
    }
}

static void make_hold(struct guard_monitor *guard_monitor, const struct config *config,
                      const char *consumer)
{
    const char *cgroup = guard_monitor->isolation->hierarchy.name;
    char *folder = worker_locks_folder(config->isolation.state, config->queue.name);
    if (!folder || worker_lock_make(&guard_monitor->worker_lock, folder, consumer, cgroup)) {
        log_text(LOG_WARNING,
                 "cannot write to %s: %s; if this worker dies, its tasks run again only when their "
                 "leases have run out. Set [isolation] state to a folder of leatd's user",
                 folder ? folder : "the state folder", strerror(errno));
    }
    free(folder);
}

struct guard_monitor *guard_monitor_new(struct ev_loop *loop, const struct config *config,
                                        const char *consumer, const struct isolation *isolation,
                                        struct host *host, struct runner *runner)
{
    struct guard_monitor *guard_monitor = calloc(1, sizeof *guard_monitor);
    if (!guard_monitor) {
        return NULL;
    }
    guard_monitor->loop = loop;
    guard_monitor->host = host;
    guard_monitor->isolation = isolation;
    guard_monitor->worker_lock.fd = -1;
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        struct post *post = &guard_monitor->posts[index];
        *post =
            (struct post){.guard_monitor = guard_monitor, .index = index, .retry_s = RETRY_BASE_S};
        fd_watch_init(&post->heard, on_heard, post);
        ev_init(&post->late, on_late);
        post->late.data = post;
    }
    make_hold(guard_monitor, config, consumer);
    guard_monitor->guard = guard_new(config->queue.name, consumer, guard_monitor->worker_lock.fd);
    if (!guard_monitor->guard) {
        guard_monitor_part(guard_monitor, true);
        guard_monitor_free(guard_monitor);
        return NULL;
    }
    runner_set_guard(runner, guard_monitor->guard);
    return guard_monitor;
}

void guard_monitor_start(struct guard_monitor *guard_monitor)
{
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        start(&guard_monitor->posts[index]);
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

void guard_monitor_part(struct guard_monitor *guard_monitor, bool clean)
{
    guard_monitor->parted = clean;
}

void guard_monitor_free(struct guard_monitor *guard_monitor)
{
    if (!guard_monitor) {
        return;
    }
    int error = errno;
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        fd_watch_stop(&guard_monitor->posts[index].heard, guard_monitor->loop);
        ev_timer_stop(guard_monitor->loop, &guard_monitor->posts[index].late);
    }
    bool parts =
        guard_monitor->parted && (!guard_monitor->guard || !guard_is_needed(guard_monitor->guard));
    worker_lock_drop(&guard_monitor->worker_lock, parts);
    if (parts && guard_monitor->guard) {
        guard_leave(guard_monitor->guard);
    }
    guard_free(guard_monitor->guard);
    free(guard_monitor);
    errno = error;
}
