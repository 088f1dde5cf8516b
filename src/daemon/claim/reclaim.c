#include "daemon/claim/reclaim.h"

#include <errno.h>
#include <ev.h>
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
#include "daemon/report/task_log.h"
#include "exec/guard/worker_locks.h"
#include "exec/tree/env_tag.h"

#define SOONEST_S 0.02  /* how soon a worker that is about to be dead is looked at again */
#define KEPT_LEASES 10  /* for so long a file that serves nothing yet is kept */
#define LISTED_MOST 100 /* such files that are remembered */

/* A file that could not be made use of: it is not proved that its worker's tasks are dead, or Redis
 * does not know the worker, which may be one of another server. */
struct kept {
    char *name;
    int64_t since_ns;
};

struct reclaim {
    struct ev_loop *loop;
    const struct config *config;
    struct session *session;
    const struct queue *queue;
    const char *consumer;
    struct dead_hook *dead_hook;
    const struct guard_monitor *guard_monitor;
    char *folder;
    int inotify; /* −1: none */
    struct fd_watch changed;
    ev_timer soon;
    double soon_s; /* how long that takes the next time */

    char **names; /* of the look that is under way; NULL: none is */
    size_t at;
    bool ending; /* one of them is about to be dead */
    struct worker_lock_found found;
    int64_t moved; /* tasks of that one so far */
    bool again;    /* something changed since the look began */
    bool complained;
    struct kept kept[LISTED_MOST];
    size_t kept_count;
    struct command command;
};

static void call(struct reclaim *reclaim);

/* ---- files that are of no use yet ---- */

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

/* Also where another worker has removed it. */
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

/* Answers whether it is the first time that this is said of the file. */
static bool keep(struct reclaim *reclaim, const char *name)
{
    int64_t now_ns = clock_boot_ns();
    struct kept *kept = find_kept(reclaim, name);
    if (kept) {
        int64_t most_ns = KEPT_LEASES * reclaim->config->queue.lease_ms * CLOCK_NS_PER_MS;
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

/* ---- one look through the folder ---- */

static void look_soon(struct reclaim *reclaim)
{
    /* what takes longer than a scan period is found by the scan */
    if (reclaim->soon_s * 1000 < (double)reclaim->config->queue.scan_ms) {
        ev_timer_stop(reclaim->loop, &reclaim->soon);
        ev_now_update(reclaim->loop);
        ev_timer_set(&reclaim->soon, reclaim->soon_s, 0.);
        ev_timer_start(reclaim->loop, &reclaim->soon);
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
    /* what somebody else has removed */
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

/* Its guards have died with it, so nobody else ends what of its tasks is left. That what is found
 * here is all proves nothing. */
static void meet_unproved(const struct reclaim *reclaim)
{
    struct log_field fields[] = {LOG_TEXT("LEAT_WORKER", reclaim->found.consumer)};
    size_t killed = env_tag_kill(reclaim->found.consumer);
    log_event(LOG_NOTICE, NULL, fields, 1,
              "worker %s is gone, but it is not proved that nothing of its tasks runs any more: "
              "their leases run out before they run again",
              reclaim->found.consumer);
    if (killed > 0) {
        log_event(LOG_NOTICE, NULL, fields, 1, "killed %zu processes that worker %s has left",
                  killed, reclaim->found.consumer);
    }
}

/* Goes on with the look up to the next worker that is to be adopted, or to the end. */
static void go_on(struct reclaim *reclaim)
{
    for (; reclaim->names[reclaim->at]; reclaim->at++) {
        const char *name = reclaim->names[reclaim->at];
        enum worker_lock_state state = worker_locks_look(reclaim->folder, name, &reclaim->found);
        if (strcmp(reclaim->found.consumer, reclaim->consumer) == 0) {
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
                meet_unproved(reclaim);
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
    if (!session_is_up(reclaim->session)) {
        return; /* the next registration looks */
    }
    if (reclaim->names) {
        reclaim->again = true;
        return;
    }
    if (reclaim->inotify >= 0) {
        /* each time: it may be another folder of that name. Without it the scan finds all. */
        (void)inotify_add_watch(reclaim->inotify, reclaim->folder,
                                IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR);
    }
    reclaim->names = worker_locks_list(reclaim->folder);
    reclaim->at = 0;
    reclaim->ending = false;
    if (reclaim->names) {
        go_on(reclaim);
    }
}

/* ---- adopting one worker ---- */

static void tell_adopted(const struct reclaim *reclaim)
{
    char since[40] = "", count[24];
    struct tm parts;
    time_t seconds = (time_t)(reclaim->found.dead_ms / 1000);
    if (reclaim->found.dead_ms == 0 || !gmtime_r(&seconds, &parts) ||
        strftime(since, sizeof since, "dead since %Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        (void)snprintf(since, sizeof since, "of which nothing is left"); /* fits */
    }
    (void)snprintf(count, sizeof count, "%" PRId64, reclaim->moved); /* fits */
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "adopted"),
                                 LOG_TEXT("LEAT_WORKER", reclaim->found.consumer),
                                 LOG_TEXT("LEAT_COUNT", count)};
    log_event(LOG_NOTICE, LOG_ID_ADOPTED, fields, 3, "adopted %s task%s of worker %s, %s", count,
              reclaim->moved == 1 ? "" : "s", reclaim->found.consumer, since);
}

/* Where Redis does not know the worker, another worker may just have adopted it, or it is one of
 * another server's, whose next start will look for the file. */
static void end_call(struct reclaim *reclaim, bool known)
{
    const char *name = reclaim->names[reclaim->at];
    if (known || reclaim->moved > 0) {
        tell_adopted(reclaim);
        drop(reclaim, name);
    } else {
        (void)keep(reclaim, name); /* without memory it is met again */
    }
    reclaim->at++;
    go_on(reclaim);
}

static void on_adopted(void *context, const struct redisReply *reply)
{
    struct reclaim *reclaim = context;
    struct queue_requeue_reply answer;
    if (!reply) {
        return; /* adopt_down follows */
    }
    if (queue_requeue_read(reply, &answer)) {
        /* whatever the other calls need, too, they notice themselves */
        char why[512];
        queue_explain(reply, why, sizeof why);
        log_text(reclaim->complained ? LOG_DEBUG : LOG_WARNING,
                 "cannot adopt the tasks of worker %s, they wait until their leases run out: %s",
                 reclaim->found.consumer, why);
        reclaim->complained = true;
        reclaim->at++;
        go_on(reclaim);
        return;
    }
    reclaim->moved += answer.moved;
    if (answer.ended->elements > 0) {
        task_log_ended_by_claim(answer.ended);
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
    queue_requeue(&reclaim->command, reclaim->queue, reclaim->found.consumer, true);
    if (session_send(reclaim->session, &reclaim->command, on_adopted, reclaim)) {
        session_recover(reclaim->session, REDIS_ERROR_LOST, "cannot send a command");
    }
}

void reclaim_down(struct reclaim *reclaim)
{
    ev_timer_stop(reclaim->loop, &reclaim->soon);
    worker_locks_list_free(reclaim->names);
    reclaim->names = NULL;
    reclaim->again = false;
    reclaim->soon_s = SOONEST_S;
}

/* ---- life ---- */

static void on_soon(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    reclaim_look(watcher->data);
}

/* A guard has written its line, or somebody has died. The lock goes a moment later than that is
 * told. */
static void on_changed(void *context)
{
    struct reclaim *reclaim = context;
    char unread[4096]; /* what has changed does not matter */
    ssize_t got = read(reclaim->inotify, unread, sizeof unread);
    if (got <= 0 && errno != EAGAIN && errno != EINTR) {
        fd_watch_stop(&reclaim->changed, reclaim->loop); /* the scan looks, too */
        return;
    }
    reclaim->soon_s = SOONEST_S;
    if (!ev_is_active(&reclaim->soon)) {
        look_soon(reclaim);
    }
}

struct reclaim *reclaim_new(struct ev_loop *loop, const struct config *config,
                            struct session *session, const struct queue *queue,
                            const char *consumer, struct dead_hook *dead_hook,
                            const struct guard_monitor *guard_monitor)
{
    struct reclaim *reclaim = calloc(1, sizeof *reclaim);
    if (!reclaim) {
        return NULL;
    }
    reclaim->loop = loop;
    reclaim->config = config;
    reclaim->session = session;
    reclaim->queue = queue;
    reclaim->consumer = consumer;
    reclaim->dead_hook = dead_hook;
    reclaim->guard_monitor = guard_monitor;
    reclaim->soon_s = SOONEST_S;
    ev_timer_init(&reclaim->soon, on_soon, 0., 0.);
    reclaim->soon.data = reclaim;
    reclaim->inotify = descriptor_out_of_the_way(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    fd_watch_init(&reclaim->changed, on_changed, reclaim);
    reclaim->folder = worker_locks_folder(config->isolation.state, config->queue.name);
    if (!reclaim->folder) {
        reclaim_free(reclaim);
        return NULL;
    }
    if (reclaim->inotify >= 0) {
        fd_watch_start(&reclaim->changed, loop, reclaim->inotify, EV_READ);
    }
    return reclaim;
}

void reclaim_set_config(struct reclaim *reclaim, const struct config *config)
{
    reclaim->config = config;
}

void reclaim_free(struct reclaim *reclaim)
{
    if (!reclaim) {
        return;
    }
    reclaim_down(reclaim);
    fd_watch_stop(&reclaim->changed, reclaim->loop);
    if (reclaim->inotify >= 0) {
        (void)close(reclaim->inotify); /* nothing was written */
    }
    while (reclaim->kept_count > 0) {
        forget_kept(reclaim, reclaim->kept);
    }
    command_free(&reclaim->command);
    free(reclaim->folder);
    free(reclaim);
}
