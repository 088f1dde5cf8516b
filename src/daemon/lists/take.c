/*
 * Runs rounds of leat_intake on producer lists: which list is next, how many run at a time, and
 * when all pause.
 */
#include "daemon/lists/take.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/log/log.h"
#include "base/timer.h"
#include "daemon/session/session.h"
#include "queue/lists.h"

#define ROUNDS_MAX 16     /* rounds under way at a time */
#define ITEMS_MAX 500     /* in one call */
#define PAUSE_FIRST_MS 50 /* doubles with each pause in a row */
#define PAUSE_MAX_MS 1000
#define WARNINGS_MAX 20 /* between two successes: there may be thousands of lists */

struct take {
    struct worker_context *worker;
    struct watch *watch;
    struct known_lists *known;
    struct take_events events;
    TAILQ_HEAD(, list) line; /* of lists for a round */
    int rounds;              /* under way */
    bool full;               /* the log says that the queue is full */
    int warnings;
    int64_t pause_ms; /* the last pause; 0: items were taken since */
    struct timer pause;
};

/* ---- errors ---- */

/* Returns what to do, after a semicolon; "" if the message says it. */
static const char *advice_for(enum redis_error error, const char *text)
{
    if (error == REDIS_ERROR_ROLE || strncmp(text, "CROSSSLOT", 9) == 0) {
        return "; in a Cluster, give list and stream the same {tag}";
    }
    if (error == REDIS_ERROR_FOREIGN) {
        return "; only lists can be taken";
    }
    return error == REDIS_ERROR_NO_WRITE ? "; retrying until Redis accepts writes"
           : error == REDIS_ERROR_DENIED ? "; check the user's ACL"
                                         : "";
}

void take_log_error(struct take *take, struct bytes name, unsigned *logged, const char *error)
{
    enum redis_error kind = redis_error_classify(error, strlen(error));
    bool warn = !(*logged & 1U << kind) && take->warnings < WARNINGS_MAX;
    struct buffer shown = BUFFER_INIT;
    const char *text = NULL;
    size_t size = redis_error_text(error, strlen(error), &text);
    if (kind == REDIS_ERROR_NO_LIBRARY) {
        session_recover(take->worker->session, kind, error);
        return;
    }
    /* without memory for it, the line has no name */
    if (escape_append(&shown, name.data, name.size)) {
        buffer_clear(&shown);
    }
    log_text(warn ? LOG_WARNING : LOG_DEBUG, "list %.*s: cannot take items: %.*s%s",
             (int)shown.size, shown.size > 0 ? shown.data : "", (int)size, text,
             advice_for(kind, text));
    buffer_free(&shown);
    *logged |= 1U << kind;
    take->warnings += warn;
}

static void pause_all(struct take *take)
{
    if (timer_runs(&take->pause)) {
        return;
    }
    int64_t next_ms = take->pause_ms ? take->pause_ms * 2 : PAUSE_FIRST_MS;
    take->pause_ms = next_ms < PAUSE_MAX_MS ? next_ms : PAUSE_MAX_MS;
    timer_start_ms(&take->pause, take->pause_ms);
}

/* A temporary error pauses all lists and repeats the round; any other error ends the round. */
static void on_error(struct list *list, const struct redisReply *reply)
{
    enum redis_error error = redis_error_classify(reply->str, reply->len);
    take_log_error(list->take, list->name, &list->logged, reply->str);
    if (error == REDIS_ERROR_LATER || error == REDIS_ERROR_NO_WRITE) {
        list->changed = true;
        pause_all(list->take);
    } else {
        list->failed = true;
    }
}

/* ---- a round ---- */

static void log_full(struct take *take, bool full)
{
    if (full != take->full) {
        log_text(LOG_NOTICE, "%s",
                 full ? "queue full: items stay in their lists"
                      : "queue no longer full: taking items from lists again");
    }
    take->full = full;
}

static void on_answer(struct list *list, const struct queue_intake_reply *answer)
{
    struct take *take = list->take;
    list->taken = answer->taken;
    if (answer->taken > 0) {
        take->pause_ms = 0;
        take->warnings = 0;
        list->logged = 0;
        known_lists_touch(take->known, list);
    }
    if (answer->full) {
        pause_all(take);
    }
    if (answer->full || answer->taken > 0) {
        log_full(take, answer->full);
    }
}

static void on_taken(void *context, const struct redisReply *reply)
{
    struct list *list = context;
    struct queue_intake_reply answer;
    if (!reply) {
        return; /* the watch is closing and ends all rounds */
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        on_error(list, reply);
    } else if (queue_intake_read(reply, &answer)) {
        watch_recover(list->take->watch, "intake: unexpected reply");
    } else {
        on_answer(list, &answer);
    }
}

/* The reply to LLEN ends the round. */
static void on_length(void *context, const struct redisReply *reply)
{
    struct list *list = context;
    struct take *take = list->take;
    int64_t length = 0;
    if (!reply) {
        return; /* the watch is closing and ends all rounds */
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        if (!list->failed) {
            on_error(list, reply);
        }
    } else if (queue_list_length_read(reply, &length)) {
        watch_recover(take->watch, "LLEN: unexpected reply");
        return;
    }
    list->busy = false;
    take->rounds--;
    list->has_items = length > 0 && !list->failed;
    take->events.ended(take->events.context, list);
    if (list->has_items) {
        take_schedule(take, list);
    }
    take_start_rounds(take);
}

bool take_has_prefix(const struct config_intake *intake, struct bytes name)
{
    size_t size = intake->prefix ? strlen(intake->prefix) : 0;
    return size > 0 && name.size >= size && memcmp(name.data, intake->prefix, size) == 0;
}

/* Returns the part of the name after the prefix, or "" without a prefix. */
static struct bytes lane_of(const struct config_intake *intake, struct bytes name)
{
    if (intake->lane_from != CONFIG_LANE_FROM_SUFFIX || !take_has_prefix(intake, name)) {
        return (struct bytes){"", 0};
    }
    size_t size = strlen(intake->prefix);
    return (struct bytes){name.data + size, name.size - size};
}

static void send_intake(struct take *take, struct list *list)
{
    const struct config_intake *settings = &take->worker->config->intake;
    struct queue_intake intake = {
        .key = list->name,
        .kind = "list",
        .most = ITEMS_MAX,
        .field = settings->field,
        .lane = lane_of(settings, list->name),
        .unique = settings->unique == CONFIG_UNIQUE_ITEM,
    };
    queue_intake(&take->worker->command, take->worker->queue, &intake);
    watch_send(take->watch, on_taken, list);
}

static void send_length(struct take *take, struct list *list)
{
    if (watch_listens(take->watch)) {
        queue_watch_next(&take->worker->command);
        watch_send(take->watch, NULL, NULL);
    }
    queue_list_length(&take->worker->command, list->name);
    watch_send(take->watch, on_length, list);
}

static void start_round(struct take *take, struct list *list)
{
    list->busy = true;
    list->changed = list->failed = false;
    list->taken = 0;
    take->rounds++;
    if (list->has_items) {
        send_intake(take, list);
    }
    send_length(take, list);
}

/* ---- the line ---- */

void take_schedule(struct take *take, struct list *list)
{
    list->take = take;
    if (list->queued || list->busy) {
        return;
    }
    list->queued = true;
    TAILQ_INSERT_TAIL(&take->line, list, line);
}

void take_start_rounds(struct take *take)
{
    while (!TAILQ_EMPTY(&take->line) && take->rounds < ROUNDS_MAX && !timer_runs(&take->pause) &&
           watch_is_up(take->watch)) {
        struct list *list = TAILQ_FIRST(&take->line);
        TAILQ_REMOVE(&take->line, list, line);
        list->queued = false;
        start_round(take, list);
    }
}

static void on_pause(void *context)
{
    take_start_rounds(context);
}

void take_reset(struct take *take)
{
    timer_stop(&take->pause);
    struct list *list;
    TAILQ_FOREACH(list, &take->known->ages, age) {
        list->queued = list->busy = list->has_items = list->woken = list->changed = false;
    }
    TAILQ_INIT(&take->line);
    take->rounds = 0;
}

/* ---- creation and reload ---- */

struct take *take_new(struct worker_context *worker, struct watch *watch, struct known_lists *known,
                      const struct take_events *events)
{
    struct take *take = calloc(1, sizeof *take);
    if (take) {
        take->worker = worker;
        take->watch = watch;
        take->known = known;
        take->events = *events;
        TAILQ_INIT(&take->line);
        timer_init(&take->pause, worker->loop, on_pause, take);
    }
    return take;
}

void take_reload(struct take *take)
{
    take->warnings = 0;
}

void take_free(struct take *take)
{
    if (take) {
        timer_stop(&take->pause);
        free(take);
    }
}
