#include "daemon/adopt.h"

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
#include "base/log.h"
#include "base/log_ids.h"
#include "daemon/record.h"
#include "exec/descriptor.h"
#include "exec/holds.h"
#include "exec/mark.h"

#define SOONEST_S 0.02  /* how soon a worker that is about to be dead is looked at again */
#define KEPT_LEASES 10  /* for so long a file that serves nothing yet is kept */
#define LISTED_MOST 100 /* such files that are remembered */

/* A file that could not be made use of: it is not proved that its worker's tasks are dead, or Redis
 * does not know the worker, which may be one of another server. */
struct kept {
    char *name;
    int64_t since_ns;
};

struct adopt {
    struct ev_loop *loop;
    const struct config *config;
    struct session *session;
    const struct queue *queue;
    const char *consumer;
    struct herald *herald;
    const struct warden *warden;
    char *folder;
    int inotify; /* −1: none */
    struct fd_watch changed;
    ev_timer soon;
    double soon_s; /* how long that takes the next time */

    char **names; /* of the look that is under way; NULL: none is */
    size_t at;
    bool ending; /* one of them is about to be dead */
    struct holds_found found;
    int64_t moved; /* tasks of that one so far */
    bool again;    /* something changed since the look began */
    bool complained;
    struct kept kept[LISTED_MOST];
    size_t kept_count;
    struct command command;
};

static void call(struct adopt *adopt);

/* ---- files that are of no use yet ---- */

static struct kept *find_kept(struct adopt *adopt, const char *name)
{
    for (size_t i = 0; i < adopt->kept_count; i++) {
        if (strcmp(adopt->kept[i].name, name) == 0) {
            return &adopt->kept[i];
        }
    }
    return NULL;
}

static void forget_kept(struct adopt *adopt, struct kept *kept)
{
    free(kept->name);
    *kept = adopt->kept[--adopt->kept_count];
}

/* Also where another worker has removed it. */
static void drop(struct adopt *adopt, const char *name)
{
    struct kept *kept = find_kept(adopt, name);
    if (kept) {
        forget_kept(adopt, kept);
    }
    if (holds_remove(adopt->folder, name)) {
        log_text(LOG_WARNING, "cannot remove %s/%s: %s", adopt->folder, name, strerror(errno));
    }
}

/* Answers whether it is the first time that this is said of the file. */
static bool keep(struct adopt *adopt, const char *name)
{
    int64_t now_ns = clock_boot_ns();
    struct kept *kept = find_kept(adopt, name);
    if (kept) {
        int64_t most_ns = KEPT_LEASES * adopt->config->queue.lease_ms * CLOCK_NS_PER_MS;
        if (now_ns - kept->since_ns > most_ns) {
            drop(adopt, name);
        }
        return false;
    }
    char *copy = adopt->kept_count < LISTED_MOST ? strdup(name) : NULL;
    if (copy) {
        adopt->kept[adopt->kept_count++] = (struct kept){.name = copy, .since_ns = now_ns};
    }
    return copy != NULL;
}

/* ---- one look through the folder ---- */

static void look_soon(struct adopt *adopt)
{
    /* what takes longer than a scan period is found by the scan */
    if (adopt->soon_s * 1000 < (double)adopt->config->queue.scan_ms) {
        ev_timer_stop(adopt->loop, &adopt->soon);
        ev_now_update(adopt->loop);
        ev_timer_set(&adopt->soon, adopt->soon_s, 0.);
        ev_timer_start(adopt->loop, &adopt->soon);
        adopt->soon_s *= 2;
    }
}

static bool is_listed(const struct adopt *adopt, const char *name)
{
    for (size_t i = 0; adopt->names[i]; i++) {
        if (strcmp(adopt->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void end_look(struct adopt *adopt)
{
    /* what somebody else has removed */
    for (size_t i = adopt->kept_count; i > 0; i--) {
        if (!is_listed(adopt, adopt->kept[i - 1].name)) {
            forget_kept(adopt, &adopt->kept[i - 1]);
        }
    }
    holds_list_free(adopt->names);
    adopt->names = NULL;
    if (adopt->ending) {
        look_soon(adopt);
    } else {
        adopt->soon_s = SOONEST_S;
    }
    if (adopt->again) {
        adopt->again = false;
        adopt_look(adopt);
    }
}

/* Its guards have died with it, so nobody else ends what of its tasks is left. That what is found
 * here is all proves nothing. */
static void meet_unproved(const struct adopt *adopt)
{
    struct log_field fields[] = {LOG_TEXT("LEAT_WORKER", adopt->found.consumer)};
    size_t killed = mark_kill(adopt->found.consumer);
    log_event(LOG_NOTICE, NULL, fields, 1,
              "worker %s is gone, but it is not proved that nothing of its tasks runs any more: "
              "their leases run out before they run again",
              adopt->found.consumer);
    if (killed > 0) {
        log_event(LOG_NOTICE, NULL, fields, 1, "killed %zu processes that worker %s has left",
                  killed, adopt->found.consumer);
    }
}

/* Goes on with the look up to the next worker that is to be adopted, or to the end. */
static void go_on(struct adopt *adopt)
{
    for (; adopt->names[adopt->at]; adopt->at++) {
        const char *name = adopt->names[adopt->at];
        enum holds_state state = holds_look(adopt->folder, name, &adopt->found);
        if (strcmp(adopt->found.consumer, adopt->consumer) == 0) {
            continue;
        }
        if (state == HOLDS_UNPROVED && warden_proves(adopt->warden, adopt->found.cgroup)) {
            state = HOLDS_PROVED;
        }
        switch (state) {
        case HOLDS_NONE:
        case HOLDS_LIVES:
            break;
        case HOLDS_ENDS:
            adopt->ending = true;
            break;
        case HOLDS_UNPROVED:
            if (keep(adopt, name)) {
                meet_unproved(adopt);
            }
            break;
        case HOLDS_PROVED:
            adopt->moved = 0;
            call(adopt);
            return;
        }
    }
    end_look(adopt);
}

void adopt_look(struct adopt *adopt)
{
    if (!session_is_up(adopt->session)) {
        return; /* the next registration looks */
    }
    if (adopt->names) {
        adopt->again = true;
        return;
    }
    if (adopt->inotify >= 0) {
        /* each time: it may be another folder of that name. Without it the scan finds all. */
        (void)inotify_add_watch(adopt->inotify, adopt->folder,
                                IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR);
    }
    adopt->names = holds_list(adopt->folder);
    adopt->at = 0;
    adopt->ending = false;
    if (adopt->names) {
        go_on(adopt);
    }
}

/* ---- adopting one worker ---- */

static void tell_adopted(const struct adopt *adopt)
{
    char since[40] = "", count[24];
    struct tm parts;
    time_t seconds = (time_t)(adopt->found.dead_ms / 1000);
    if (adopt->found.dead_ms == 0 || !gmtime_r(&seconds, &parts) ||
        strftime(since, sizeof since, "dead since %Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        (void)snprintf(since, sizeof since, "of which nothing is left"); /* fits */
    }
    (void)snprintf(count, sizeof count, "%" PRId64, adopt->moved); /* fits */
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "adopted"),
                                 LOG_TEXT("LEAT_WORKER", adopt->found.consumer),
                                 LOG_TEXT("LEAT_COUNT", count)};
    log_event(LOG_NOTICE, LOG_ID_ADOPTED, fields, 3, "adopted %s task%s of worker %s, %s", count,
              adopt->moved == 1 ? "" : "s", adopt->found.consumer, since);
}

/* Where Redis does not know the worker, another worker may just have adopted it, or it is one of
 * another server's, whose next start will look for the file. */
static void end_call(struct adopt *adopt, bool known)
{
    const char *name = adopt->names[adopt->at];
    if (known || adopt->moved > 0) {
        tell_adopted(adopt);
        drop(adopt, name);
    } else {
        (void)keep(adopt, name); /* without memory it is met again */
    }
    adopt->at++;
    go_on(adopt);
}

static void on_adopted(void *context, const struct redisReply *reply)
{
    struct adopt *adopt = context;
    struct queue_requeue_reply answer;
    if (!reply) {
        return; /* adopt_down follows */
    }
    if (queue_requeue_read(reply, &answer)) {
        /* whatever the other calls need, too, they notice themselves */
        char why[512];
        queue_explain(reply, why, sizeof why);
        log_text(adopt->complained ? LOG_DEBUG : LOG_WARNING,
                 "cannot adopt the tasks of worker %s, they wait until their leases run out: %s",
                 adopt->found.consumer, why);
        adopt->complained = true;
        adopt->at++;
        go_on(adopt);
        return;
    }
    adopt->moved += answer.moved;
    if (answer.buried->elements > 0) {
        record_buried(answer.buried);
        herald_ask(adopt->herald);
    }
    if (answer.more) {
        call(adopt);
        return;
    }
    adopt->complained = false;
    end_call(adopt, answer.known);
}

static void call(struct adopt *adopt)
{
    queue_requeue(&adopt->command, adopt->queue, adopt->found.consumer, true);
    if (session_send(adopt->session, &adopt->command, on_adopted, adopt)) {
        session_recover(adopt->session, REDIS_ERROR_LOST, "cannot send a command");
    }
}

void adopt_down(struct adopt *adopt)
{
    ev_timer_stop(adopt->loop, &adopt->soon);
    holds_list_free(adopt->names);
    adopt->names = NULL;
    adopt->again = false;
    adopt->soon_s = SOONEST_S;
}

/* ---- life ---- */

static void on_soon(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    adopt_look(watcher->data);
}

/* A guard has written its line, or somebody has died. The lock goes a moment later than that is
 * told. */
static void on_changed(void *context)
{
    struct adopt *adopt = context;
    char unread[4096]; /* what has changed does not matter */
    ssize_t got = read(adopt->inotify, unread, sizeof unread);
    if (got <= 0 && errno != EAGAIN && errno != EINTR) {
        fd_watch_stop(&adopt->changed, adopt->loop); /* the scan looks, too */
        return;
    }
    adopt->soon_s = SOONEST_S;
    if (!ev_is_active(&adopt->soon)) {
        look_soon(adopt);
    }
}

struct adopt *adopt_new(struct ev_loop *loop, const struct config *config, struct session *session,
                        const struct queue *queue, const char *consumer, struct herald *herald,
                        const struct warden *warden)
{
    struct adopt *adopt = calloc(1, sizeof *adopt);
    if (!adopt) {
        return NULL;
    }
    adopt->loop = loop;
    adopt->config = config;
    adopt->session = session;
    adopt->queue = queue;
    adopt->consumer = consumer;
    adopt->herald = herald;
    adopt->warden = warden;
    adopt->soon_s = SOONEST_S;
    ev_timer_init(&adopt->soon, on_soon, 0., 0.);
    adopt->soon.data = adopt;
    adopt->inotify = descriptor_out_of_the_way(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    fd_watch_init(&adopt->changed, on_changed, adopt);
    adopt->folder = holds_folder(config->isolation.state, config->queue.name);
    if (!adopt->folder) {
        adopt_free(adopt);
        return NULL;
    }
    if (adopt->inotify >= 0) {
        fd_watch_start(&adopt->changed, loop, adopt->inotify, EV_READ);
    }
    return adopt;
}

void adopt_set_config(struct adopt *adopt, const struct config *config)
{
    adopt->config = config;
}

void adopt_free(struct adopt *adopt)
{
    if (!adopt) {
        return;
    }
    adopt_down(adopt);
    fd_watch_stop(&adopt->changed, adopt->loop);
    if (adopt->inotify >= 0) {
        (void)close(adopt->inotify); /* nothing was written */
    }
    while (adopt->kept_count > 0) {
        forget_kept(adopt, adopt->kept);
    }
    command_free(&adopt->command);
    free(adopt->folder);
    free(adopt);
}
