/*
 * Decides which producer lists get a round and when: after a change, after discovery, or when the
 * scan period ends.
 */
#include "daemon/lists/lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/timer.h"
#include "daemon/lists/known_lists.h"
#include "daemon/lists/seek.h"
#include "daemon/lists/take.h"
#include "daemon/lists/watch.h"
#include "daemon/session/session.h"

#define NAME_MAX_BYTES 512 /* the longest name of a discovered list */
#define LOSSES_FREE 2      /* losses in a row that cause no delay */
#define LOSS_DELAY_MS 10   /* the delay after the next loss; it doubles with each more */
#define LOSS_DELAY_MAX_MS 1000
#define LOSSES_FORGOTTEN_MS 2000 /* time without a loss after which the count starts again */

struct lists {
    struct worker_context *worker;
    struct watch *watch;
    struct take *take;
    struct seek *seek;
    struct known_lists known;
    bool session_up, closed;
    unsigned logged;   /* errors that are not about one list: see take_log_error */
    struct timer look; /* looks at the pinned lists, in case a notification was missed */
};

/* ---- changes ---- */

/* A worker that loses a list to others several times in a row waits before it tries again. The
 * count is forgotten after a quiet time, so that all workers then compete again. */
static int64_t loss_delay_ms(struct list *list)
{
    int64_t since_ms = (clock_boot_ns() - list->lost_ns) / CLOCK_NS_PER_MS;
    if (since_ms > LOSSES_FORGOTTEN_MS) {
        list->losses = 0;
    }
    if (list->losses < LOSSES_FREE) {
        return 0;
    }
    unsigned doublings = list->losses - LOSSES_FREE;
    int64_t delay_ms = doublings < 8 ? (int64_t)LOSS_DELAY_MS << doublings : LOSS_DELAY_MAX_MS;
    return delay_ms < LOSS_DELAY_MAX_MS ? delay_ms : LOSS_DELAY_MAX_MS;
}

/* Takes at once if the last change was not lost; otherwise looks at the length first. */
static void wake(struct list *list)
{
    list->woken = true;
    list->has_items = list->has_items || list->losses == 0;
    take_schedule(list->lists->take, list);
}

static void on_wait(void *context)
{
    struct list *list = context;
    wake(list);
    take_start_rounds(list->lists->take);
}

static void on_change(struct list *list)
{
    int64_t delay_ms = loss_delay_ms(list);
    if (list->busy) {
        list->changed = true;
    } else if (delay_ms == 0) {
        wake(list);
    } else if (!timer_runs(&list->wait)) {
        timer_start_ms(&list->wait, delay_ms);
    }
}

static void on_ended(void *context, struct list *list)
{
    (void)context;
    if (list->taken > 0) {
        list->losses = 0;
    } else if (list->failed || (list->woken && !list->has_items)) {
        list->losses++;
        list->lost_ns = clock_boot_ns();
    }
    list->woken = false;
    if (list->changed && !list->has_items) {
        on_change(list);
    }
}

/* ---- known lists ---- */

static struct list *add(struct lists *lists, struct bytes name, bool pinned)
{
    struct list *list = known_lists_add(&lists->known, name, pinned);
    if (list) {
        list->lists = lists;
        timer_init(&list->wait, lists->worker->loop, on_wait, list);
    }
    return list;
}

static void on_changed(void *context, const struct bytes *key)
{
    struct lists *lists = context;
    struct list *list =
        key ? known_lists_find(&lists->known, *key) : TAILQ_FIRST(&lists->known.ages);
    if (key && !list && take_has_prefix(&lists->worker->config->intake, *key)) {
        list = add(lists, *key, false); /* it had to make room for others */
    }
    for (; list; list = key ? NULL : TAILQ_NEXT(list, age)) {
        on_change(list);
    }
    take_start_rounds(lists->take);
}

/* The walk reports only lists that hold items. */
static void on_found(void *context, struct bytes name)
{
    struct lists *lists = context;
    if (name.size > NAME_MAX_BYTES) {
        name.size = 40;
        take_log_error(lists->take, name, &lists->logged, "REFUSED its name is too long");
        return;
    }
    struct list *list = known_lists_find(&lists->known, name);
    list = list ? list : add(lists, name, false);
    if (list && !list->busy && !timer_runs(&list->wait)) {
        list->has_items = true;
        take_schedule(lists->take, list);
        take_start_rounds(lists->take);
    }
}

static void on_seek_failed(void *context, const char *error)
{
    struct lists *lists = context;
    const char *prefix = lists->worker->config->intake.prefix;
    take_log_error(lists->take, (struct bytes){prefix, strlen(prefix)}, &lists->logged, error);
}

static void look_at_pinned(struct lists *lists)
{
    struct list *list;
    TAILQ_FOREACH(list, &lists->known.ages, age) {
        if (list->pinned && !timer_runs(&list->wait)) {
            take_schedule(lists->take, list);
        }
    }
    take_start_rounds(lists->take);
}

static void on_look(void *context)
{
    look_at_pinned(context);
}

/* ---- the watch's state ---- */

static void on_up(void *context)
{
    struct lists *lists = context;
    const struct config_intake *intake = &lists->worker->config->intake;
    double period = (double)intake->scan_ms / 1000;
    struct list *list;
    TAILQ_FOREACH(list, &lists->known.ages, age) {
        take_schedule(lists->take, list);
    }
    timer_repeat_s(&lists->look, period);
    if (intake->prefix) {
        seek_begin(lists->seek, intake->prefix, intake->scan_ms);
    }
    take_start_rounds(lists->take);
}

static void on_down(void *context)
{
    struct lists *lists = context;
    seek_end(lists->seek);
    timer_stop(&lists->look);
    struct list *list;
    TAILQ_FOREACH(list, &lists->known.ages, age) {
        timer_stop(&list->wait);
    }
    take_reset(lists->take);
}

static void open_or_close(struct lists *lists)
{
    const struct config_intake *intake = &lists->worker->config->intake;
    if (lists->session_up && !lists->closed && !lists->worker->waiting &&
        (intake->lists || intake->prefix)) {
        watch_open(lists->watch);
    } else {
        watch_close(lists->watch);
    }
}

void lists_up(struct lists *lists)
{
    lists->session_up = true;
    open_or_close(lists);
}

void lists_down(struct lists *lists)
{
    lists->session_up = false;
    open_or_close(lists);
}

void lists_close(struct lists *lists)
{
    lists->closed = true;
    open_or_close(lists);
}

/* ---- creation and reload ---- */

static bool same_text(const char *left, const char *right)
{
    return left == right || (left && right && strcmp(left, right) == 0);
}

static bool same_lists(const struct config_intake *left, const struct config_intake *right)
{
    char *const *a = left->lists, *const *b = right->lists;
    for (; a && b && *a && same_text(*a, *b); a++, b++) {
    }
    return same_text(left->prefix, right->prefix) && (a && b ? *a == *b : a == b);
}

/* Starts the table again from the configuration. The watch must be closed. */
static int add_configured(struct lists *lists)
{
    char *const *names = lists->worker->config->intake.lists;
    known_lists_clear(&lists->known);
    lists->logged = 0;
    for (size_t i = 0; names && names[i]; i++) {
        if (!add(lists, (struct bytes){names[i], strlen(names[i])}, true)) {
            return -1;
        }
    }
    return 0;
}

static int create_parts(struct lists *lists)
{
    const struct watch_events watch_events = {
        .up = on_up, .down = on_down, .changed = on_changed, .context = lists};
    const struct take_events take_events = {.ended = on_ended, .context = lists};
    const struct seek_events seek_events = {
        .found = on_found, .failed = on_seek_failed, .context = lists};
    lists->watch = watch_new(lists->worker, &watch_events);
    if (!lists->watch) {
        return -1;
    }
    lists->take = take_new(lists->worker, lists->watch, &lists->known, &take_events);
    lists->seek = seek_new(lists->worker, lists->watch, &seek_events);
    return lists->take && lists->seek ? 0 : -1;
}

struct lists *lists_new(struct worker_context *worker)
{
    struct lists *lists = calloc(1, sizeof *lists);
    if (!lists) {
        return NULL;
    }
    lists->worker = worker;
    known_lists_init(&lists->known);
    timer_init(&lists->look, worker->loop, on_look, lists);
    if (create_parts(lists) || add_configured(lists)) {
        lists_free(lists);
        return NULL;
    }
    return lists;
}

void lists_reload(struct lists *lists, const struct config *former)
{
    bool same = same_lists(&former->intake, &lists->worker->config->intake);
    watch_close(lists->watch);
    take_reload(lists->take);
    if (!same && add_configured(lists)) {
        session_recover(lists->worker->session, REDIS_ERROR_LOST, "out of memory");
    }
    open_or_close(lists);
}

void lists_free(struct lists *lists)
{
    if (!lists) {
        return;
    }
    if (lists->watch && lists->take && lists->seek) {
        watch_close(lists->watch);
    }
    known_lists_clear(&lists->known);
    seek_free(lists->seek);
    take_free(lists->take);
    watch_free(lists->watch);
    free(lists);
}
