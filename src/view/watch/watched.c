/*
 * One queue that is watched.
 */
#include "view/watch/watched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "config/file/load.h"
#include "config/file/source.h"
#include "queue/calls.h"
#include "redis/server/link.h"
#include "redis/value.h"
#include "view/lanes.h"
#include "view/output_json.h"
#include "view/queue_state.h"
#include "view/shown.h"
#include "view/status.h"
#include "view/watch/samples.h"

#define LEAST_INTERVAL_NS CLOCK_NS_PER_S
#define MOST_INTERVAL_NS (9 * CLOCK_NS_PER_S) /* less than between two samples */
#define STALE_NS (30 * CLOCK_NS_PER_S) /* of the list of ended tasks: an age may delete some */
#define SHARE                                                                                      \
    4000 /* of the time, that Redis spends on each part at most: a quarter of a millisecond a      \
            second */
#define MOST_WAIT_MS 2000
#define US_PER_S 1000000
#define NS_PER_US 1000
#define MOST_SECONDS UINT32_MAX      /* since 1970 */
#define MOST_TOOK_US (10 * US_PER_S) /* more costs no more */
#define LANES_KEPT 20
#define LANES_PAGE 30

/* The lists of leat_list that are shown. Lists of the same name are shown as one. */
static const struct {
    const char *name, *what, *cursor;
    int64_t rows;
} kinds[] = {
    {"running", "running", "0", 25}, {"ready", "ready", "g0-0", 10},
    {"ready", "ready", "s0-0", 10},  {"ready", "ready", "l0", 10},
    {"delayed", "waiting", "0", 12}, {"dead", "dead", "+", 12},
};

enum { LISTS = sizeof kinds / sizeof *kinds };

#define ENDED_ROWS 20 /* tasks that ended last */

struct list {
    struct watched *watched;
    json_t *rows; /* NULL: not known */
};

/* A walk through all lanes, a page with each refresh. */
struct walk {
    struct lanes lanes;   /* so far; most is 0 if there was no memory */
    struct buffer cursor; /* empty: at the beginning */
    struct lanes last;    /* of the last whole walk */
    bool known, whole;    /* a page has come; a walk was whole */
};

/* When a part was asked for, and what it costs. */
struct part {
    struct watched *watched;
    int64_t asked_ns;  /* the last time; 0: never */
    int64_t before_us; /* the time of Redis before it; 0: not known yet */
    int64_t cost_ns;   /* how long Redis took for it; the less of the last two times */
    int64_t last_ns;   /* how long the last time */
};

struct watched {
    struct config *config; /* NULL: invalid */
    struct queue queue;
    struct link *link; /* NULL if the config is */
    char *name;
    watched_refreshed *refreshed;
    void *context;

    enum queue_state state;
    struct buffer reason;
    bool starting;  /* the first connection is not up, and has not failed */
    bool broken;    /* the connection broke during the refresh */
    size_t awaited; /* answers of the refresh */
    struct part parts[WATCHED_PARTS];
    struct redisReply *reply; /* the last status; NULL: not known */
    struct status status;     /* points into it */
    struct buffer problems;   /* of it */
    int64_t status_ns;        /* when it was answered */
    struct list lists[LISTS];
    struct walk walk;
    json_t *ended;       /* the tasks that ended last; NULL: not known */
    int64_t ended_count; /* of all ends, when they were asked for */
    bool wants_ended;    /* they are asked for if the next status has more ends */

    bool wants_sample; /* the next status belongs to the samples */
    struct samples samples;
};

static int64_t boot_ms(void)
{
    return clock_boot_ns() / CLOCK_NS_PER_MS;
}

static void set_state(struct watched *watched, enum queue_state state, const char *reason)
{
    watched->state = state;
    buffer_clear(&watched->reason);
    /* a failed append marks the buffer, and the reason is then missing */
    (void)buffer_append_text(&watched->reason, reason);
}

/* ---- answers */

static void drop_status(struct watched *watched)
{
    status_free(&watched->status);
    freeReplyObject(watched->reply);
    watched->reply = NULL;
}

/* Without memory the last status stays. */
static void note_status(struct watched *watched, const struct redisReply *reply)
{
    static const struct status_limits no_limits = {-1, -1, -1};
    struct redisReply *copy = value_duplicate(reply);
    struct buffer problems = BUFFER_INIT;
    struct status status = {0};

    if (!copy || status_read(copy, watched->config->queue.lease_ms, &status) != 0 ||
        status_problems(&status, watched->config->queue.group, &no_limits, &problems) != 0) {
        status_free(&status);
        freeReplyObject(copy);
        buffer_free(&problems);
        return;
    }
    drop_status(watched);
    watched->reply = copy;
    watched->status = status;
    watched->status_ns = clock_boot_ns();
    buffer_free(&watched->problems);
    watched->problems = problems;
    set_state(watched,
              problems.size > 0      ? QUEUE_STATE_UNHEALTHY
              : status.paused_ms > 0 ? QUEUE_STATE_PAUSED
                                     : QUEUE_STATE_HEALTHY,
              "");
    if (watched->wants_sample) {
        samples_add(&watched->samples, &watched->status, boot_ms());
        watched->wants_sample = false;
    }
}

static void forget_status(struct watched *watched, enum queue_state state, const char *why,
                          const char *advice)
{
    char reason[512];

    (void)snprintf(reason, sizeof reason, "%s; %s", why, advice);
    set_state(watched, state, reason);
    drop_status(watched);
}

/* Whether it is an array of at least that many elements in the protocol that leat speaks. */
static bool is_answer(const struct redisReply *reply, size_t elements)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements >= elements &&
           reply->element[0]->type == REDIS_REPLY_INTEGER &&
           reply->element[0]->integer == QUEUE_PROTOCOL;
}

static void read_status(struct watched *watched, const struct redisReply *reply)
{
    char why[256];
    enum redis_error error = redis_error_of_reply(reply, 0, "status", why, sizeof why);

    if (error != REDIS_ERROR_NONE) {
        forget_status(watched, queue_state_of_error(error), why, redis_error_advice(error, false));
    } else if (!is_answer(reply, STATUS_ELEMENTS)) {
        forget_status(watched, QUEUE_STATE_FAILED, "the queue's library is of another version",
                      "install the same version everywhere");
    } else {
        note_status(watched, reply);
    }
}

/* Counts an answer. NULL: the connection broke, and on_changed follows. */
static void count_answer(struct watched *watched, const struct redisReply *reply)
{
    watched->broken |= !reply;
    if (--watched->awaited == 0 && !watched->broken) {
        watched->refreshed(watched->context);
    }
}

/* After the status, so that a refresh that sees more ends brings them, too. */
static void ask_for_ended(struct watched *watched);

static void on_status(void *context, const struct redisReply *reply)
{
    struct watched *watched = context;

    if (reply) {
        read_status(watched, reply);
        ask_for_ended(watched);
    }
    count_answer(watched, reply);
}

static void put_json(json_t **place, json_t *value)
{
    json_decref(*place);
    *place = value;
}

/* The rows of an answer. NULL: it is no list, or there was no memory. */
static json_t *list_json(const struct redisReply *reply)
{
    const struct redisReply *rows = reply && is_answer(reply, 3) ? reply->element[2] : NULL;
    json_t *array = NULL;

    if (rows && rows->type == REDIS_REPLY_ARRAY) {
        array = json_array();
        for (size_t i = 0; i < rows->elements; i++) {
            output_push(&array, shown_row(rows->element[i]));
        }
    }
    return array;
}

static void on_list(void *context, const struct redisReply *reply)
{
    struct list *list = context;

    put_json(&list->rows, list_json(reply));
    count_answer(list->watched, reply);
}

static void on_ended(void *context, const struct redisReply *reply)
{
    struct watched *watched = context;

    put_json(&watched->ended, list_json(reply));
    count_answer(watched, reply);
}

static void begin_walk(struct walk *walk)
{
    lanes_free(&walk->lanes);
    buffer_clear(&walk->cursor);
    walk->lanes.most = LANES_KEPT;
    if (lanes_begin(&walk->lanes) != 0) {
        walk->lanes.most = 0;
    }
}

static void on_lanes(void *context, const struct redisReply *reply)
{
    struct watched *watched = context;
    struct walk *walk = &watched->walk;

    if (reply && is_answer(reply, 3) && value_is_string(reply->element[1]) &&
        reply->element[2]->type == REDIS_REPLY_ARRAY && walk->lanes.most > 0 &&
        lanes_keep(&walk->lanes, reply->element[2]) == 0) {
        bool ends = reply->element[1]->len == 0;
        walk->known = true;
        if (ends) {
            lanes_free(&walk->last);
            walk->last = walk->lanes;
            walk->lanes = (struct lanes){0};
            walk->whole = true;
        }
        buffer_clear(&walk->cursor);
        if (ends || buffer_append(&walk->cursor, reply->element[1]->str, reply->element[1]->len)) {
            begin_walk(walk);
        }
    }
    count_answer(watched, reply);
}

/* ---- questions */

int watched_send(struct watched *watched, struct command *command, connection_callback *callback,
                 void *context)
{
    int result = watched->link ? link_send(watched->link, command, callback, context) : -1;

    command_free(command);
    return result;
}

static void ask(struct watched *watched, struct command *command, connection_callback *callback,
                void *context)
{
    if (watched_send(watched, command, callback, context) == 0) {
        watched->awaited++;
    }
}

/* ---- parts */

static int64_t bounded(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* The time of Redis, which is asked for before and after a part. */
static void on_time(void *context, const struct redisReply *reply)
{
    struct part *part = context;
    int64_t seconds, us, took_ns;

    /* a server may say anything */
    if (reply && value_number_at(reply, 0, &seconds) == 0 && value_number_at(reply, 1, &us) == 0 &&
        seconds >= 0 && seconds <= MOST_SECONDS && us >= 0 && us < US_PER_S) {
        us += seconds * US_PER_S;
        if (part->before_us == 0) {
            part->before_us = us;
        } else {
            took_ns = bounded(us - part->before_us, 0, MOST_TOOK_US) * NS_PER_US;
            part->cost_ns = took_ns < part->last_ns ? took_ns : part->last_ns;
            part->last_ns = took_ns;
        }
    }
    count_answer(part->watched, reply);
}

static void ask_time(struct part *part)
{
    struct command command = {0};

    COMMAND_BEGIN(&command, "TIME");
    ask(part->watched, &command, on_time, part);
}

static void ask_status(struct watched *watched)
{
    struct command command = {0};

    queue_status(&command, &watched->queue);
    ask(watched, &command, on_status, watched);
}

static void ask_lanes(struct watched *watched)
{
    struct command command = {0};

    if (watched->walk.lanes.most == 0) {
        begin_walk(&watched->walk);
    }
    queue_lanes(&command, &watched->queue, buffer_bytes(&watched->walk.cursor), LANES_PAGE);
    ask(watched, &command, on_lanes, watched);
}

static void ask_lists(struct watched *watched)
{
    struct command command = {0};

    for (size_t i = 0; i < LISTS; i++) {
        queue_list(&command, &watched->queue, kinds[i].what, kinds[i].cursor, kinds[i].rows, false);
        ask(watched, &command, on_list, &watched->lists[i]);
    }
}

static bool is_due(const struct part *part, int64_t now_ns)
{
    int64_t interval_ns = bounded(part->cost_ns * SHARE, LEAST_INTERVAL_NS, MOST_INTERVAL_NS);

    return part->asked_ns == 0 || now_ns - part->asked_ns >= interval_ns;
}

static void ask_part(struct part *part, void (*ask_it)(struct watched *watched), int64_t now_ns)
{
    part->asked_ns = now_ns;
    part->before_us = 0;
    ask_time(part);
    ask_it(part->watched);
    ask_time(part);
}

static void ask_ended(struct watched *watched)
{
    struct command command = {0};

    queue_list(&command, &watched->queue, "done", "d+", ENDED_ROWS, false);
    ask(watched, &command, on_ended, watched);
}

static int64_t count_ends(const struct status *status)
{
    return status_figure(status, "total_succeeded") + status_figure(status, "total_dead") +
           status_figure(status, "total_cancelled");
}

static void ask_for_ended(struct watched *watched)
{
    struct part *part = &watched->parts[WATCHED_ENDED];
    int64_t now_ns = clock_boot_ns(), count;

    if (!watched->wants_ended || !watched->reply || !is_due(part, now_ns)) {
        return;
    }
    count = count_ends(&watched->status);
    if (part->asked_ns == 0 || now_ns - part->asked_ns >= STALE_NS ||
        count != watched->ended_count) {
        watched->ended_count = count;
        ask_part(part, ask_ended, now_ns);
    }
}

void watched_refresh(struct watched *watched, enum watched_part part)
{
    static void (*const asks[WATCHED_PARTS])(struct watched * watched) = {
        [WATCHED_STATUS] = ask_status, [WATCHED_LANES] = ask_lanes, [WATCHED_LISTS] = ask_lists};
    int64_t now_ns = clock_boot_ns();

    if (watched->awaited > 0 || !watched->link || !link_is_up(watched->link)) {
        return;
    }
    watched->broken = false;
    watched->wants_ended = part == WATCHED_ENDED;
    for (size_t i = 0; i <= (size_t)part; i++) {
        if (asks[i] && is_due(&watched->parts[i], now_ns)) {
            ask_part(&watched->parts[i], asks[i], now_ns);
        }
    }
    if (watched->parts[WATCHED_STATUS].asked_ns != now_ns) {
        ask_for_ended(watched);
    }
}

bool watched_is_refreshing(const struct watched *watched)
{
    return watched->awaited > 0 || watched->starting;
}

void watched_sample(struct watched *watched)
{
    watched->wants_sample = true;
    watched_refresh(watched, WATCHED_STATUS);
}

static void on_changed(void *context, enum redis_error error, const char *why)
{
    struct watched *watched = context;
    bool starting = watched->starting;

    watched->starting = false;
    if (error == REDIS_ERROR_NONE) {
        for (size_t i = 0; i < WATCHED_PARTS; i++) {
            watched->parts[i].asked_ns = 0;
        }
        watched_refresh(watched, starting ? WATCHED_ENDED : WATCHED_STATUS);
        return;
    }
    forget_status(watched, queue_state_of_error(error), why, redis_error_advice(error, false));
    watched->refreshed(watched->context);
}

/* ---- JSON */

const struct status *watched_status(const struct watched *watched)
{
    return watched->reply ? &watched->status : NULL;
}

/* The first walk shows before it is whole. */
const struct lanes *watched_lanes(const struct watched *watched)
{
    const struct walk *walk = &watched->walk;

    return !walk->known ? NULL : walk->whole ? &walk->last : &walk->lanes;
}

json_t *watched_summary(const struct watched *watched)
{
    json_t *object =
        json_pack("{s:s, s:s}", "queue", watched->name, "state", queue_state_name(watched->state));

    output_put(&object, "status",
               watched->reply ? status_json(&watched->status, &watched->problems, watched->name)
                              : json_null());
    output_put_bytes(&object, "reason", buffer_bytes(&watched->reason));
    if (watched->reply) {
        output_put(&object, "age_ms",
                   json_integer((clock_boot_ns() - watched->status_ns) / CLOCK_NS_PER_MS));
    }
    return object;
}

static void add_rows(json_t **object, const char *name, json_t *rows)
{
    json_t *there = json_object_get(*object, name);

    if (!there) {
        output_put(object, name, rows ? json_copy(rows) : json_null());
    } else if (rows && json_is_array(there) && json_array_extend(there, rows) != 0) {
        json_decref(*object);
        *object = NULL;
    }
}

json_t *watched_page(const struct watched *watched)
{
    json_t *object = watched_summary(watched);
    const struct lanes *lanes = watched_lanes(watched);

    for (size_t i = 0; i < LISTS && watched->reply; i++) {
        add_rows(&object, kinds[i].name, watched->lists[i].rows);
    }
    if (watched->reply) {
        add_rows(&object, "ended", watched->ended);
    }
    if (watched->reply && lanes) {
        output_put(&object, "lanes", lanes_json(lanes));
        output_put(&object, "lanes_whole", json_boolean(watched->walk.whole));
    }
    return object;
}

json_t *watched_series(const struct watched *watched, bool day)
{
    return ring_json(day ? &watched->samples.day : &watched->samples.hour, boot_ms());
}

const char *watched_name(const struct watched *watched)
{
    return watched->name;
}

const struct queue *watched_queue(const struct watched *watched)
{
    return watched->link ? &watched->queue : NULL;
}

/* ---- beginning and end */

/* A file that is wrong is no failure: the state says so. */
static int load(struct watched *watched)
{
    struct buffer errors = BUFFER_INIT;
    char *path = config_source_queue_path(watched->name);
    int result = path ? 0 : -1;

    if (path && config_load(path, &watched->config, &errors) != 0) {
        /* a failed append marks the buffer */
        (void)buffer_append(&errors, "", 1);
        set_state(watched, QUEUE_STATE_INVALID, errors.failed ? "out of memory" : errors.data);
    }
    buffer_free(&errors);
    free(path);
    return result;
}

static void lower(int64_t *ms, int64_t most_ms)
{
    *ms = *ms < most_ms ? *ms : most_ms;
}

/* People do not wait for as long as a worker may. */
static int begin(struct watched *watched, struct ev_loop *loop,
                 const struct watched_settings *settings)
{
    char name[160];

    if (!watched->config) {
        return 0;
    }
    lower(&watched->config->redis.connect_timeout_ms, MOST_WAIT_MS);
    lower(&watched->config->redis.command_timeout_ms, MOST_WAIT_MS);
    lower(&watched->config->redis.backoff_cap_ms, MOST_WAIT_MS);
    (void)snprintf(name, sizeof name, "leat:%s:%s", watched->config->queue.name, settings->watcher);
    if (queue_init(&watched->queue, watched->config->queue.stream, watched->config->queue.group) !=
        0) {
        return -1;
    }
    watched->queue.read_only = settings->read_only;
    watched->starting = true;
    watched->link = link_new(loop, &watched->config->redis, name, on_changed, watched);
    return watched->link ? 0 : -1;
}

struct watched *watched_new(struct ev_loop *loop, const struct watched_settings *settings,
                            watched_refreshed *refreshed, void *context)
{
    struct watched *watched = calloc(1, sizeof *watched);

    if (!watched) {
        config_free(settings->config);
        return NULL;
    }
    watched->config = settings->config;
    watched->refreshed = refreshed;
    watched->context = context;
    watched->wants_sample = true;
    samples_init(&watched->samples);
    for (size_t i = 0; i < WATCHED_PARTS; i++) {
        watched->parts[i].watched = watched;
    }
    for (size_t i = 0; i < LISTS; i++) {
        watched->lists[i].watched = watched;
    }
    watched->name = strdup(settings->name);
    set_state(watched, QUEUE_STATE_UNREACHABLE, "not connected yet");
    if (!watched->name || (!watched->config && load(watched) != 0) ||
        begin(watched, loop, settings) != 0) {
        watched_free(watched);
        return NULL;
    }
    return watched;
}

void watched_free(struct watched *watched)
{
    if (!watched) {
        return;
    }
    link_free(watched->link);
    for (size_t i = 0; i < LISTS; i++) {
        json_decref(watched->lists[i].rows);
    }
    json_decref(watched->ended);
    drop_status(watched);
    buffer_free(&watched->problems);
    lanes_free(&watched->walk.lanes);
    lanes_free(&watched->walk.last);
    buffer_free(&watched->walk.cursor);
    buffer_free(&watched->reason);
    queue_free(&watched->queue);
    config_free(watched->config);
    free(watched->name);
    free(watched);
}
