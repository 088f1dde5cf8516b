/* Asks all sources in rounds, and reports the best answer of each round. */
#include "redis/server/discovery.h"

#include <hiredis/hiredis.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timer.h"
#include "redis/connection/connection.h"

#define AGAIN_S 0.5 /* how often to ask: a stale master that still answers is left after that */
#define GRACE_S 0.2 /* for the other sources, after the first answer */
#define LEARNT_MOST 16

enum source_state { SOURCE_CLOSED, SOURCE_OPENING, SOURCE_UP };

/* A sentinel, or a node of the Cluster. */
struct source {
    struct discovery *discovery;
    struct endpoint address;
    struct config_redis redis;     /* the settings of the connection */
    struct connection *connection; /* NULL: this element is free */
    enum source_state state;
    bool asked;             /* asked and not answered yet, perhaps since earlier rounds */
    bool silent;            /* it did not answer in the last round */
    bool settled;           /* in this round: it has answered or failed */
    bool knows;             /* its answer names the server */
    struct endpoint answer; /* if it knows */
};

struct discovery {
    struct ev_loop *loop;
    const struct config_redis *config;
    struct discovery_events events;
    char *name;             /* the name of the connections */
    struct source *sources; /* those of the config, then free elements for learnt nodes */
    size_t given, count;    /* how many the config names; how many elements */
    struct endpoint learnt[LEARNT_MOST]; /* nodes of the Cluster in the last answer */
    size_t learnt_count;
    bool stranded; /* the config's sources were useless in the last round */
    struct command command;

    bool asking;            /* a round is running */
    bool known;             /* and the answer was reported */
    bool lost;              /* a source could not be reached in it */
    enum redis_error error; /* the most telling error in it */
    char why[512];
    int64_t epoch;      /* the highest epoch that was believed */
    struct timer end;   /* ends the round, with or without all answers */
    struct timer again; /* begins the next round */
};

bool discovery_is_needed(const struct config_redis *config)
{
    return config->sentinels || config->cluster;
}

struct config_redis discovery_apply(const struct config_redis *config, struct endpoint *endpoint)
{
    struct config_redis redis = *config;
    redis.socket = NULL;
    redis.host = endpoint->host;
    redis.port = endpoint->port;
    return redis;
}

/* ---- the end of a round ---- */

/* The answers of a round. */
struct tally {
    const struct source *best;     /* NULL: no source knows */
    size_t asked, knowing, useful; /* useful: how many of the knowing sources the config names */
};

static struct tally count_answers(const struct discovery *discovery)
{
    struct tally tally = {0};
    for (size_t i = 0; i < discovery->count; i++) {
        const struct source *source = &discovery->sources[i];
        const struct source *best = tally.best;
        tally.asked += source->connection ? 1 : 0;
        if (source->connection && source->settled && source->knows) {
            tally.knowing++;
            tally.useful += i < discovery->given ? 1 : 0;
            tally.best = best && best->answer.epoch >= source->answer.epoch ? best : source;
        }
    }
    return tally;
}

static void tell_nobody(struct discovery *discovery, enum redis_error error, const char *why)
{
    const struct config_redis *config = discovery->config;
    char text[700];
    if (config->cluster) {
        (void)snprintf(text, sizeof text, "no node of the Cluster knows which node has slot %d: %s",
                       config->slot, why);
    } else {
        (void)snprintf(text, sizeof text, "no sentinel knows the address of master %.100s: %s",
                       config->master, why);
    }
    discovery->events.told(discovery->events.context, NULL, error, text);
}

static void end_round(struct discovery *discovery)
{
    struct tally tally = count_answers(discovery);
    const struct source *best = tally.best;
    bool outdated =
        best && best->answer.epoch < discovery->epoch && tally.knowing * 2 <= tally.asked;
    discovery->asking = false;
    discovery->stranded = tally.useful == 0 || outdated;
    for (size_t i = 0; i < discovery->count; i++) {
        discovery->sources[i].silent = !discovery->sources[i].settled;
    }
    timer_stop(&discovery->end);
    timer_start_s(&discovery->again, AGAIN_S);

    if (best && !outdated) {
        discovery->epoch = best->answer.epoch;
        discovery->events.told(discovery->events.context, &best->answer, REDIS_ERROR_NONE, "");
    } else if (outdated) {
        tell_nobody(discovery, REDIS_ERROR_LOST,
                    "the sources that answer have older information than before");
    } else if (discovery->error == REDIS_ERROR_NONE) {
        tell_nobody(discovery, REDIS_ERROR_LOST, "no answer in time");
    } else {
        /* an error that only an operator can mend is certain only if all sources report it */
        tell_nobody(discovery, discovery->lost ? REDIS_ERROR_LOST : discovery->error,
                    discovery->why);
    }
}

static void on_end(void *context)
{
    end_round(context);
}

static void end_within(struct discovery *discovery, double delay)
{
    timer_start_s(&discovery->end, delay);
}

/* A source that was silent in the last round is waited for only while no source knows anything. */
static bool is_missing(const struct discovery *discovery, const struct source *source)
{
    return source->connection && !source->settled && !(source->silent && discovery->known);
}

static void settle(struct source *source, bool knows)
{
    struct discovery *discovery = source->discovery;
    source->settled = true;
    source->silent = false;
    source->knows = knows;
    if (!discovery->asking) {
        return;
    }
    bool first = knows && !discovery->known, missing = false;
    discovery->known = discovery->known || knows;
    for (size_t i = 0; i < discovery->count; i++) {
        missing = missing || is_missing(discovery, &discovery->sources[i]);
    }
    if (!missing) {
        end_within(discovery, 0.); /* must not run in a connection's callback */
    } else if (first) {
        end_within(discovery, GRACE_S);
    }
}

/* The first reason in a round that is more than a lost connection counts. */
static void note(struct source *source, enum redis_error error, const char *why)
{
    struct discovery *discovery = source->discovery;
    discovery->lost = discovery->lost || error == REDIS_ERROR_LOST;
    if (discovery->error == REDIS_ERROR_NONE ||
        (discovery->error == REDIS_ERROR_LOST && error != REDIS_ERROR_LOST)) {
        discovery->error = error;
        (void)snprintf(discovery->why, sizeof discovery->why, "%s", why);
    }
}

/* ---- asking ---- */

/* Notes an answer that has no address. */
static void refuse(struct source *source, enum redis_error error, const char *what)
{
    char why[512];
    (void)snprintf(why, sizeof why, "%.200s:%lld: %.200s", source->address.host,
                   (long long)source->address.port, what);
    note(source, error, why);
}

/* unfit: the message if the server does not know the command, since it is of another kind. */
static bool is_error(struct source *source, const redisReply *reply, const char *unfit)
{
    if (reply->type != REDIS_REPLY_ERROR) {
        return false;
    }
    enum redis_error error = redis_error_classify(reply->str, reply->len);
    if (error == REDIS_ERROR_UNFIT) {
        refuse(source, REDIS_ERROR_CALLER, unfit);
    } else {
        refuse(source, error, reply->str);
    }
    return true;
}

static void on_nodes(void *context, const redisReply *reply)
{
    struct source *source = context;
    if (!reply) {
        return; /* the loss of the connection is reported as well */
    }
    source->asked = false;
    int found = -1;
    if (!is_error(source, reply, "this server is not a node of a Cluster")) {
        struct discovery *discovery = source->discovery;
        const char *host = source->address.host;
        found = endpoint_read_nodes(reply, discovery->config->slot, host, &source->answer);
        if (found == 0 && source->answer.epoch >= discovery->epoch) {
            discovery->learnt_count =
                endpoint_list_nodes(reply, host, discovery->learnt, LEARNT_MOST);
        } else if (found > 0) {
            refuse(source, REDIS_ERROR_LATER, "no node has that slot");
        } else if (found < 0) {
            refuse(source, REDIS_ERROR_OTHER, "CLUSTER NODES: unexpected reply");
        }
    }
    settle(source, found == 0);
}

static void on_master(void *context, const redisReply *reply)
{
    struct source *source = context;
    source->knows = false;
    if (!reply || is_error(source, reply, "this server is not a sentinel")) {
        return;
    }
    int found = endpoint_read_master(reply, &source->answer);
    source->knows = found == 0;
    if (found > 0) {
        refuse(source, REDIS_ERROR_CALLER, "this sentinel knows no master of that name");
    } else if (found < 0) {
        refuse(source, REDIS_ERROR_OTHER, "the address of the master: unexpected reply");
    }
}

/* A single sentinel needs no epoch, so its user may lack the right to ask for it. */
static void on_epoch(void *context, const redisReply *reply)
{
    struct source *source = context;
    if (reply) {
        source->asked = false;
        source->answer.epoch = endpoint_read_epoch(reply);
        settle(source, source->knows);
    }
}

static int send_to(struct source *source, connection_callback *callback)
{
    struct discovery *discovery = source->discovery;
    return connection_send(source->connection, &discovery->command,
                           discovery->config->connect_timeout_ms, callback, source);
}

static void ask(struct source *source)
{
    struct discovery *discovery = source->discovery;
    const struct config_redis *config = discovery->config;
    int failed = 0;
    if (config->cluster) {
        endpoint_ask_nodes(&discovery->command);
        failed = send_to(source, on_nodes);
    } else {
        endpoint_ask_master(&discovery->command, config->master);
        failed = send_to(source, on_master);
        endpoint_ask_epoch(&discovery->command, config->master);
        failed = failed || send_to(source, on_epoch);
    }
    source->asked = true;
    if (failed) {
        source->asked = false;
        source->state = SOURCE_CLOSED;
        connection_close(source->connection);
        refuse(source, REDIS_ERROR_LOST, "out of memory");
        settle(source, false);
    }
}

static void on_up(void *context, struct connection *connection)
{
    (void)connection;
    struct source *source = context;
    source->state = SOURCE_UP;
    ask(source);
}

static void on_lost(void *context, struct connection *connection, enum redis_error error,
                    const char *why)
{
    (void)connection;
    struct source *source = context;
    source->state = SOURCE_CLOSED;
    source->asked = false;
    note(source, error, why);
    settle(source, false);
}

/* Sentinels have users of their own, and no databases. */
static void set_redis(struct source *source)
{
    const struct config_redis *config = source->discovery->config;
    source->redis = discovery_apply(config, &source->address);
    source->redis.db = 0;
    if (config->sentinels) {
        source->redis.user = config->sentinel_user;
        source->redis.password = config->sentinel_password;
    }
}

static int init_source(struct source *source, struct discovery *discovery)
{
    const struct connection_events events = {.up = on_up, .lost = on_lost, .context = source};
    source->discovery = discovery;
    set_redis(source);
    source->connection = connection_new(discovery->loop, &source->redis, discovery->name, &events);
    if (!source->connection) {
        return -1;
    }
    connection_need_no_id(source->connection);
    return 0;
}

static bool is_among(const struct endpoint *list, size_t count, const struct endpoint *endpoint)
{
    for (size_t i = 0; i < count; i++) {
        if (endpoint_equal(&list[i], endpoint)) {
            return true;
        }
    }
    return false;
}

static bool is_source(const struct discovery *discovery, const struct endpoint *endpoint)
{
    for (size_t i = 0; i < discovery->count; i++) {
        const struct source *source = &discovery->sources[i];
        if (source->connection && endpoint_equal(&source->address, endpoint)) {
            return true;
        }
    }
    return false;
}

/* While the config's sources are useless, the nodes that were learnt last are asked, too. Must not
 * run in a connection's callback. */
static void choose_learnt(struct discovery *discovery)
{
    size_t wanted = discovery->stranded ? discovery->learnt_count : 0;
    for (size_t i = discovery->given; i < discovery->count; i++) {
        struct source *source = &discovery->sources[i];
        if (source->connection && !is_among(discovery->learnt, wanted, &source->address)) {
            connection_free(source->connection);
            *source = (struct source){0};
        }
    }
    for (size_t i = discovery->given, next = 0; i < discovery->count && next < wanted; i++) {
        struct source *source = &discovery->sources[i];
        while (next < wanted && is_source(discovery, &discovery->learnt[next])) {
            next++;
        }
        if (!source->connection && next < wanted) {
            *source = (struct source){.address = discovery->learnt[next++]};
            (void)init_source(source,
                              discovery); /* if there is no memory, the element stays free */
        }
    }
}

void discovery_ask(struct discovery *discovery)
{
    if (discovery->asking) {
        return;
    }
    choose_learnt(discovery);
    discovery->asking = true;
    discovery->known = false;
    discovery->lost = false;
    discovery->error = REDIS_ERROR_NONE;
    timer_stop(&discovery->again);
    end_within(discovery, (double)discovery->config->connect_timeout_ms / 1000);
    for (size_t i = 0; i < discovery->count; i++) {
        struct source *source = &discovery->sources[i];
        source->settled = false;
        if (!source->connection) {
            continue;
        }
        if (source->state == SOURCE_CLOSED) {
            source->state = SOURCE_OPENING;
            set_redis(source);
            connection_open(source->connection);
        } else if (source->state == SOURCE_UP && !source->asked) {
            ask(source);
        }
    }
}

static void on_again(void *context)
{
    discovery_ask(context);
}

/* ---- life ---- */

static size_t count_of(char *const *list)
{
    size_t count = 0;
    while (list[count]) {
        count++;
    }
    return count;
}

struct discovery *discovery_new(struct ev_loop *loop, const struct config_redis *config,
                                const char *name, const struct discovery_events *events)
{
    char *const *addresses = config->sentinels ? config->sentinels : config->cluster;
    struct discovery *discovery = calloc(1, sizeof *discovery);
    if (!discovery) {
        return NULL;
    }
    *discovery = (struct discovery){
        .loop = loop, .config = config, .events = *events, .given = count_of(addresses)};
    timer_init(&discovery->end, loop, on_end, discovery);
    timer_init(&discovery->again, loop, on_again, discovery);
    size_t places = discovery->given + (config->cluster ? LEARNT_MOST : 0);
    discovery->name = strdup(name);
    discovery->sources = places > 0 ? calloc(places, sizeof *discovery->sources) : NULL;
    if (!discovery->name || !discovery->sources) {
        discovery_free(discovery);
        return NULL;
    }
    discovery->count = places;
    for (size_t i = 0; i < discovery->given; i++) {
        struct source *source = &discovery->sources[i];
        if (addresses_split(addresses[i], source->address.host, &source->address.port) ||
            init_source(source, discovery)) {
            discovery_free(discovery);
            return NULL;
        }
    }
    return discovery;
}

void discovery_set_config(struct discovery *discovery, const struct config_redis *config)
{
    discovery->config = config;
    for (size_t i = 0; i < discovery->count; i++) {
        if (discovery->sources[i].connection) {
            set_redis(&discovery->sources[i]);
        }
    }
}

void discovery_free(struct discovery *discovery)
{
    if (!discovery) {
        return;
    }
    timer_stop(&discovery->end);
    timer_stop(&discovery->again);
    for (size_t i = 0; i < discovery->count; i++) {
        connection_free(discovery->sources[i].connection);
    }
    free(discovery->sources);
    free(discovery->name);
    command_free(&discovery->command);
    free(discovery);
}
