/*
 * One queue as the board sees it.
 */
#include "board/watched.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "board/link.h"
#include "board/ring.h"
#include "config/file/load.h"
#include "config/file/source.h"
#include "queue/calls.h"
#include "redis/value.h"
#include "view/lanes.h"
#include "view/output_json.h"
#include "view/queue_state.h"
#include "view/rows_json.h"
#include "view/status.h"

#define LEAST_INTERVAL_NS CLOCK_NS_PER_S
#define SHARE 50             /* a refresh takes at most one part in this many of the time */
#define HOUR_STEP_MS 10000   /* 360 points */
#define DAY_STEP_MS 240000   /* the same */
#define LONGEST_GAP_MS 60000 /* between the samples of a rate */
#define MOST_WAIT_MS 2000
#define LANES_KEPT 20
#define LANES_PAGE 50
#define CURSOR_SIZE 256

enum { TOTALS = RING_VALUES - RING_SUCCEEDED };

/* What of leat_list the page shows. Lists of the same name are shown as one. */
static const struct {
    const char *name, *what, *cursor;
    int64_t rows;
} kinds[] = {
    {"running", "running", "0", 50}, {"ready", "ready", "g0-0", 10},
    {"ready", "ready", "s0-0", 10},  {"ready", "ready", "l0", 10},
    {"delayed", "waiting", "0", 20}, {"dead", "dead", "+", 25},
};

enum { LISTS = sizeof kinds / sizeof *kinds };

struct list {
    struct watched *watched;
    json_t *rows; /* NULL: not known */
};

/* A walk through all lanes, a page with each refresh. */
struct walk {
    struct lanes lanes;
    struct buffer cursor; /* empty: at the beginning */
    json_t *shown;        /* of the last whole walk, or of the first one so far; NULL: none */
    bool whole;
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
    bool starting;     /* the first connection is not up, and has not failed */
    bool broken;       /* the connection broke during the refresh */
    size_t awaited;    /* answers of the refresh */
    int64_t begun_ns;  /* the last refresh; 0: none */
    int64_t lists_ns;  /* the last one with lists */
    int64_t took_ns;   /* how long it took */
    json_t *status;    /* NULL: not known */
    int64_t status_ns; /* when it was answered */
    struct list lists[LISTS];
    struct walk walk;

    bool samples; /* the next status belongs into the rings */
    int64_t sampled_ms;
    int64_t totals[TOTALS]; /* of the last sample */
    struct ring hour, day;
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

/* ---- samples */

static void read_rates(struct watched *watched, const struct status *status, int64_t now_ms,
                       double values[RING_VALUES])
{
    static const char *const names[TOTALS] = {"total_succeeded", "total_retried", "total_dead",
                                              "total_cancelled"};
    int64_t elapsed_ms = now_ms - watched->sampled_ms;
    bool fits = watched->sampled_ms > 0 && elapsed_ms > 0 && elapsed_ms < LONGEST_GAP_MS;

    for (size_t i = 0; i < TOTALS; i++) {
        int64_t total = status_figure(status, names[i]);
        int64_t ended = total - watched->totals[i];
        values[RING_SUCCEEDED + i] =
            fits && ended >= 0 ? (double)ended * 1000 / (double)elapsed_ms : NAN;
        watched->totals[i] = total;
    }
    watched->sampled_ms = now_ms;
}

static void add_sample(struct watched *watched, const struct status *status)
{
    int64_t now_ms = boot_ms();
    double values[RING_VALUES] = {
        [RING_READY] = (double)status_figure(status, "ready"),
        [RING_RUNNING] = (double)status_figure(status, "running"),
        [RING_DELAYED] =
            (double)(status_figure(status, "delayed") + status_figure(status, "retrying")),
        [RING_DEAD] = (double)status_figure(status, "dead"),
    };

    read_rates(watched, status, now_ms, values);
    ring_add(&watched->hour, now_ms, values);
    ring_add(&watched->day, now_ms, values);
    watched->samples = false;
}

/* ---- answers */

static void put_json(json_t **place, json_t *value)
{
    json_decref(*place);
    *place = value;
}

static void note_status(struct watched *watched, const struct status *status)
{
    static const struct status_limits no_limits = {-1, -1, -1};
    struct buffer problems = BUFFER_INIT;

    if (status_problems(status, watched->config->queue.group, &no_limits, &problems) == 0) {
        put_json(&watched->status, status_json(status, &problems, watched->name));
    }
    set_state(watched,
              problems.size > 0       ? QUEUE_STATE_UNHEALTHY
              : status->paused_ms > 0 ? QUEUE_STATE_PAUSED
                                      : QUEUE_STATE_HEALTHY,
              "");
    watched->status_ns = clock_boot_ns();
    buffer_free(&problems);
}

static void forget_status(struct watched *watched, enum queue_state state, const char *why,
                          const char *advice)
{
    char reason[512];

    (void)snprintf(reason, sizeof reason, "%s; %s", why, advice);
    set_state(watched, state, reason);
    put_json(&watched->status, NULL);
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
    struct status status;
    char why[256];
    enum redis_error error = redis_error_of_reply(reply, 0, "status", why, sizeof why);

    if (error != REDIS_ERROR_NONE) {
        forget_status(watched, queue_state_of_error(error), why, redis_error_advice(error, false));
    } else if (!is_answer(reply, STATUS_ELEMENTS)) {
        forget_status(watched, QUEUE_STATE_FAILED, "the queue's library is of another version",
                      "install the same version everywhere");
    } else if (status_read(reply, watched->config->queue.lease_ms, &status) == 0) {
        note_status(watched, &status);
        if (watched->samples) {
            add_sample(watched, &status);
        }
        status_free(&status);
    }
}

/* Counts an answer. NULL: the connection broke, and on_changed follows. */
static void count_answer(struct watched *watched, const struct redisReply *reply)
{
    watched->broken |= !reply;
    if (--watched->awaited > 0) {
        return;
    }
    watched->took_ns = clock_boot_ns() - watched->begun_ns;
    if (!watched->broken) {
        watched->refreshed(watched->context);
    }
}

static void on_status(void *context, const struct redisReply *reply)
{
    struct watched *watched = context;

    if (reply) {
        read_status(watched, reply);
    }
    count_answer(watched, reply);
}

static void on_list(void *context, const struct redisReply *reply)
{
    struct list *list = context;
    json_t *rows = NULL;

    if (reply && is_answer(reply, 3) && reply->element[2]->type == REDIS_REPLY_ARRAY) {
        rows = json_array();
        for (size_t i = 0; i < reply->element[2]->elements; i++) {
            output_push(&rows, rows_json(reply->element[2]->element[i]));
        }
    }
    put_json(&list->rows, rows);
    count_answer(list->watched, reply);
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
        if (ends || !walk->whole) {
            put_json(&walk->shown, lanes_json(&walk->lanes));
            walk->whole = ends;
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

static void ask_lists(struct watched *watched)
{
    struct command command = {0};

    for (size_t i = 0; i < LISTS; i++) {
        queue_list(&command, &watched->queue, kinds[i].what, kinds[i].cursor, kinds[i].rows, false);
        ask(watched, &command, on_list, &watched->lists[i]);
    }
    if (watched->walk.lanes.most == 0) {
        begin_walk(&watched->walk);
    }
    queue_lanes(&command, &watched->queue, buffer_bytes(&watched->walk.cursor), LANES_PAGE);
    ask(watched, &command, on_lanes, watched);
}

static bool is_due(const struct watched *watched, int64_t last_ns, int64_t now_ns)
{
    int64_t interval_ns = watched->took_ns * SHARE;

    if (interval_ns < LEAST_INTERVAL_NS) {
        interval_ns = LEAST_INTERVAL_NS;
    }
    return last_ns == 0 || now_ns - last_ns >= interval_ns;
}

void watched_refresh(struct watched *watched, bool lists)
{
    int64_t now_ns = clock_boot_ns();
    struct command command = {0};

    lists = lists && is_due(watched, watched->lists_ns, now_ns);
    if (watched->awaited > 0 || !watched->link || !link_is_up(watched->link) ||
        (!lists && !is_due(watched, watched->begun_ns, now_ns))) {
        return;
    }
    watched->broken = false;
    watched->begun_ns = now_ns;
    queue_status(&command, &watched->queue);
    ask(watched, &command, on_status, watched);
    if (lists) {
        watched->lists_ns = now_ns;
        ask_lists(watched);
    }
}

bool watched_is_refreshing(const struct watched *watched)
{
    return watched->awaited > 0 || watched->starting;
}

void watched_sample(struct watched *watched)
{
    watched->samples = true;
    watched_refresh(watched, false);
}

static void on_changed(void *context, enum redis_error error, const char *why)
{
    struct watched *watched = context;
    bool starting = watched->starting;

    watched->starting = false;
    if (error == REDIS_ERROR_NONE) {
        watched->begun_ns = watched->lists_ns = 0;
        watched_refresh(watched, starting);
        return;
    }
    forget_status(watched, queue_state_of_error(error), why, redis_error_advice(error, false));
    watched->refreshed(watched->context);
}

/* ---- JSON */

json_t *watched_summary(const struct watched *watched)
{
    json_t *object = json_pack("{s:s, s:s, s:O?}", "queue", watched->name, "state",
                               queue_state_name(watched->state), "status", watched->status);

    output_put_bytes(&object, "reason", buffer_bytes(&watched->reason));
    if (watched->status) {
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

    for (size_t i = 0; i < LISTS && watched->status; i++) {
        add_rows(&object, kinds[i].name, watched->lists[i].rows);
    }
    if (watched->status && watched->walk.shown) {
        output_put(&object, "lanes", json_incref(watched->walk.shown));
        output_put(&object, "lanes_whole", json_boolean(watched->walk.whole));
    }
    return object;
}

json_t *watched_series(const struct watched *watched, bool day)
{
    return ring_json(day ? &watched->day : &watched->hour, boot_ms());
}

const char *watched_name(const struct watched *watched)
{
    return watched->name;
}

const struct queue *watched_queue(const struct watched *watched)
{
    return &watched->queue;
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

/* A page does not wait for as long as a worker may. */
static int begin(struct watched *watched, struct ev_loop *loop)
{
    char name[160];

    if (!watched->config) {
        return 0;
    }
    lower(&watched->config->redis.connect_timeout_ms, MOST_WAIT_MS);
    lower(&watched->config->redis.command_timeout_ms, MOST_WAIT_MS);
    lower(&watched->config->redis.backoff_cap_ms, MOST_WAIT_MS);
    (void)snprintf(name, sizeof name, "leat:%s:board", watched->config->queue.name);
    if (queue_init(&watched->queue, watched->config->queue.stream, watched->config->queue.group) !=
        0) {
        return -1;
    }
    watched->queue.read_only = true;
    watched->starting = true;
    watched->link = link_new(loop, &watched->config->redis, name, on_changed, watched);
    return watched->link ? 0 : -1;
}

struct watched *watched_new(struct ev_loop *loop, const char *name, watched_refreshed *refreshed,
                            void *context)
{
    struct watched *watched = calloc(1, sizeof *watched);

    if (!watched) {
        return NULL;
    }
    watched->refreshed = refreshed;
    watched->context = context;
    watched->hour.step_ms = HOUR_STEP_MS;
    watched->day.step_ms = DAY_STEP_MS;
    watched->samples = true;
    for (size_t i = 0; i < LISTS; i++) {
        watched->lists[i].watched = watched;
    }
    watched->name = strdup(name);
    set_state(watched, QUEUE_STATE_UNREACHABLE, "not connected yet");
    if (!watched->name || load(watched) != 0 || begin(watched, loop) != 0) {
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
    json_decref(watched->status);
    json_decref(watched->walk.shown);
    lanes_free(&watched->walk.lanes);
    buffer_free(&watched->walk.cursor);
    buffer_free(&watched->reason);
    queue_free(&watched->queue);
    config_free(watched->config);
    free(watched->name);
    free(watched);
}
