/*
 * Looks through the lock files of workers on this host, and reclaims the tasks of those that are
 * dead.
 */
#include "daemon/claim/reclaim.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_watch.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/process/descriptor.h"
#include "base/timer.h"
#include "config/lease_rule.h"
#include "daemon/report/task_log.h"
#include "exec/guard/worker_locks.h"
#include "exec/guard/worker_name.h"
#include "exec/tree/env_tag.h"
#include "queue/calls.h"
#include "queue/replies.h"

#define SOONEST_S                                                                                  \
    0.02 /* the wait before a second look at a worker whose guards are still killing */
#define KEPT_LEASES 10  /* a kept file is removed after this many leases */
#define LISTED_MOST 100 /* kept files that are remembered */

/* A lock file that is kept: it is not proved that its worker's tasks are dead, or Redis does not
 * know the worker, which may belong to another server. */
struct kept {
    char *name;
    int64_t since_ns;
};

struct reclaim {
    struct worker_context *worker;
    struct dead_hook *dead_hook;
    struct guard_monitor *guard_monitor;
    char *folder;
    int inotify; /* −1: none */
    struct fd_watch changed;
    struct timer soon;
    double soon_s; /* the timer's next delay */

    char **names; /* of the look under way; NULL: none is */
    size_t at;
    bool ending; /* the guards of one of the workers are still killing */
    struct worker_lock_found found;
    int64_t moved; /* tasks of that worker that were returned so far */
    bool again;    /* something changed during the look */
    bool complained;
    struct kept kept[LISTED_MOST];
    size_t kept_count;
};

static void call(struct reclaim *reclaim);

/* ---- kept files ---- */

static struct kept *find_kept(struct reclaim *reclaim, const char *name)
{
    for (size_t i = 0; i < reclaim->kept_count; i++) {
        if (strcmp(reclaim->kept[i].name, name) == 0) {
            return &reclaim->kept[i];
        }
    }
    return NULL;
}

static void forget_kept(struct reclaim *reclaim, struct kept *kept)
{
    free(kept->name);
    *kept = reclaim->kept[--reclaim->kept_count];
}

/* Removes the file; another worker may have done so already. */
static void drop(struct reclaim *reclaim, const char *name)
{
    struct kept *kept = find_kept(reclaim, name);
    if (kept) {
        forget_kept(reclaim, kept);
    }
    if (worker_locks_remove(reclaim->folder, name)) {
        log_text(LOG_WARNING, "cannot remove %s/%s: %s", reclaim->folder, name, strerror(errno));
    }
}

/* Keeps the file, or removes it if it was kept for long. Returns whether it is new. */
static bool keep(struct reclaim *reclaim, const char *name)
{
    int64_t now_ns = clock_boot_ns();
    struct kept *kept = find_kept(reclaim, name);
    if (kept) {
        int64_t most_ns = KEPT_LEASES * reclaim->worker->lease_ms * CLOCK_NS_PER_MS;
        if (now_ns - kept->since_ns > most_ns) {
            drop(reclaim, name);
        }
        return false;
    }
    char *copy = reclaim->kept_count < LISTED_MOST ? strdup(name) : NULL;
    if (copy) {
        reclaim->kept[reclaim->kept_count++] = (struct kept){.name = copy, .since_ns = now_ns};
    }
    return copy;
}

/* ---- a look through the folder ---- */

static void look_soon(struct reclaim *reclaim)
{
    /* the next scan finds workers that take longer than a scan period */
    const struct worker_context *worker = reclaim->worker;
    int64_t scan_ms = lease_rule_scan_ms(worker->config->queue.scan_ms, worker->lease_ms);
    if (reclaim->soon_s * 1000 < (double)scan_ms) {
        timer_start_s(&reclaim->soon, reclaim->soon_s);
        reclaim->soon_s *= 2;
    }
}

static bool is_listed(const struct reclaim *reclaim, const char *name)
{
    for (size_t i = 0; reclaim->names[i]; i++) {
        if (strcmp(reclaim->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void end_look(struct reclaim *reclaim)
{
    /* forget files that another worker has removed */
    for (size_t i = reclaim->kept_count; i > 0; i--) {
        if (!is_listed(reclaim, reclaim->kept[i - 1].name)) {
            forget_kept(reclaim, &reclaim->kept[i - 1]);
        }
    }
    worker_locks_list_free(reclaim->names);
    reclaim->names = NULL;
    if (reclaim->ending) {
        look_soon(reclaim);
    } else {
        reclaim->soon_s = SOONEST_S;
    }
    if (reclaim->again) {
        reclaim->again = false;
        reclaim_look(reclaim);
    }
}

/* The guards died with their worker, so nobody else kills its remaining processes. Killing all that
 * are found here proves nothing: some may not be found. A worker of another host may live, and its
 * processes may be visible here, if it is in a container. */
static void handle_unproved(const struct reclaim *reclaim)
{
    struct log_field fields[] = {LOG_TEXT("LEAT_WORKER", reclaim->found.consumer)};
    bool is_local = worker_name_pid(reclaim->found.consumer) > 0;
    size_t killed = is_local ? env_tag_kill(reclaim->found.consumer) : 0;
    log_event(LOG_NOTICE, NULL, fields, 1,
              "worker %s is gone, but its tasks may still be running; they will be retried when "
              "their leases expire",
              reclaim->found.consumer);
    if (killed > 0) {
        log_event(LOG_NOTICE, NULL, fields, 1,
                  "worker %s: killed %zu processes that it left behind", reclaim->found.consumer,
                  killed);
    }
}

/* Continues the look up to the next worker whose tasks are to be reclaimed, or to the end. */
static void continue_look(struct reclaim *reclaim)
{
    for (; reclaim->names[reclaim->at]; reclaim->at++) {
        const char *name = reclaim->names[reclaim->at];
        enum worker_lock_state state = worker_locks_look(reclaim->folder, name, &reclaim->found);
        if (strcmp(reclaim->found.consumer, reclaim->worker->consumer) == 0) {
            continue;
        }
        if (state == WORKER_LOCK_UNPROVED &&
            guard_monitor_proves(reclaim->guard_monitor, reclaim->found.cgroup)) {
            state = WORKER_LOCK_PROVED;
        }
        switch (state) {
        case WORKER_LOCK_NONE:
        case WORKER_LOCK_LIVES:
            break;
        case WORKER_LOCK_ENDS:
            reclaim->ending = true;
            break;
        case WORKER_LOCK_UNPROVED:
            if (keep(reclaim, name)) {
                handle_unproved(reclaim);
            }
            break;
        case WORKER_LOCK_PROVED:
            reclaim->moved = 0;
            call(reclaim);
            return;
        }
    }
    end_look(reclaim);
}

void reclaim_look(struct reclaim *reclaim)
{
    guard_monitor_check_lock(reclaim->guard_monitor);
    if (!session_is_up(reclaim->worker->session)) {
        return; /* the next registration looks */
    }
    if (reclaim->names) {
        reclaim->again = true;
        return;
    }
    if (reclaim->inotify >= 0) {
        /* added each time, since the folder may have been replaced; if it fails, the scan looks */
        (void)inotify_add_watch(reclaim->inotify, reclaim->folder,
                                IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR);
    }
    reclaim->names = worker_locks_list(reclaim->folder);
    reclaim->at = 0;
    reclaim->ending = false;
    if (reclaim->names) {
        continue_look(reclaim);
    }
}

/* ---- reclaiming from one worker ---- */

static void log_reclaimed(const struct reclaim *reclaim)
{
    char when[48], count[24];
    struct tm parts;
    time_t seconds = (time_t)(reclaim->found.dead_ms / 1000);
    if (reclaim->found.dead_ms == 0 || !gmtime_r(&seconds, &parts) ||
        strftime(when, sizeof when, "dead since %Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        (void)snprintf(when, sizeof when, "no process left");
    }
    (void)snprintf(count, sizeof count, "%" PRId64, reclaim->moved);
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "adopted"),
                                 LOG_TEXT("LEAT_WORKER", reclaim->found.consumer),
                                 LOG_TEXT("LEAT_COUNT", count)};
    log_event(LOG_NOTICE, LOG_ID_ADOPTED, fields, 3, "worker %s (%s): reclaimed %s task%s",
              reclaim->found.consumer, when, count, reclaim->moved == 1 ? "" : "s");
}

/* If Redis does not know the worker, another worker may just have reclaimed its tasks, or it
 * belongs to another server, whose next worker looks for the file. */
static void end_call(struct reclaim *reclaim, bool known)
{
    const char *name = reclaim->names[reclaim->at];
    if (known || reclaim->moved > 0) {
        log_reclaimed(reclaim);
        drop(reclaim, name);
    } else {
        (void)keep(reclaim, name); /* without memory, the next look finds it again */
    }
    reclaim->at++;
    continue_look(reclaim);
}

static void on_reclaimed(void *context, const struct redisReply *reply)
{
    struct reclaim *reclaim = context;
    struct queue_requeue_reply answer;
    if (!reply) {
        return; /* reclaim_down follows */
    }
    if (queue_requeue_read(reply, &answer)) {
        /* errors that concern the session too are noticed by its own calls */
        char why[512];
        queue_explain(reply, why, sizeof why);
        log_text(reclaim->complained ? LOG_DEBUG : LOG_WARNING,
                 "worker %s: cannot reclaim its tasks: %s; they will be retried when their leases "
                 "expire",
                 reclaim->found.consumer, why);
        reclaim->complained = true;
        reclaim->at++;
        continue_look(reclaim);
        return;
    }
    reclaim->moved += answer.moved;
    if (answer.ended->elements > 0) {
        task_log_ended_by_call(reclaim->worker->refusals, answer.ended, NULL);
        dead_hook_fetch(reclaim->dead_hook);
    }
    if (answer.more) {
        call(reclaim);
        return;
    }
    reclaim->complained = false;
    end_call(reclaim, answer.known);
}

static void call(struct reclaim *reclaim)
{
    queue_requeue(&reclaim->worker->command, reclaim->worker->queue, reclaim->found.consumer,
                  !reclaim->found.stopped);
    (void)session_send(reclaim->worker->session, on_reclaimed, reclaim); /* a failure recovers */
}

void reclaim_down(struct reclaim *reclaim)
{
    timer_stop(&reclaim->soon);
    worker_locks_list_free(reclaim->names);
    reclaim->names = NULL;
    reclaim->again = false;
    reclaim->soon_s = SOONEST_S;
}

/* ---- creation and events ---- */

static void on_soon(void *context)
{
    reclaim_look(context);
}

/* A guard has written to a file, or a worker has died. Its lock is released a moment after the
 * event. */
static void on_changed(void *context)
{
    struct reclaim *reclaim = context;
    char unread[4096]; /* the events only mean: look again */
    ssize_t got = read(reclaim->inotify, unread, sizeof unread);
    if (got <= 0 && errno != EAGAIN && errno != EINTR) {
        fd_watch_stop(&reclaim->changed, reclaim->worker->loop); /* the scan still looks */
        return;
    }
    reclaim->soon_s = SOONEST_S;
    if (!timer_runs(&reclaim->soon)) {
        look_soon(reclaim);
    }
}

struct reclaim *reclaim_new(struct worker_context *worker, struct dead_hook *dead_hook,
                            struct guard_monitor *guard_monitor)
{
    struct reclaim *reclaim = calloc(1, sizeof *reclaim);
    if (!reclaim) {
        return NULL;
    }
    reclaim->worker = worker;
    reclaim->dead_hook = dead_hook;
    reclaim->guard_monitor = guard_monitor;
    reclaim->soon_s = SOONEST_S;
    timer_init(&reclaim->soon, worker->loop, on_soon, reclaim);
    reclaim->inotify = descriptor_out_of_the_way(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    fd_watch_init(&reclaim->changed, on_changed, reclaim);
    reclaim->folder =
        worker_locks_folder(worker->config->isolation.state, worker->config->queue.name);
    if (!reclaim->folder) {
        reclaim_free(reclaim);
        return NULL;
    }
    if (reclaim->inotify >= 0) {
        fd_watch_start(&reclaim->changed, worker->loop, reclaim->inotify, EV_READ);
    }
    return reclaim;
}

void reclaim_free(struct reclaim *reclaim)
{
    if (!reclaim) {
        return;
    }
    reclaim_down(reclaim);
    fd_watch_stop(&reclaim->changed, reclaim->worker->loop);
    descriptor_close(&reclaim->inotify);
    while (reclaim->kept_count > 0) {
        forget_kept(reclaim, reclaim->kept);
    }
    free(reclaim->folder);
    free(reclaim);
}
