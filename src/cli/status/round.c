/*
 * Asks several queues side by side.
 */
#include "cli/status/round.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "config/file/load.h"
#include "config/file/source.h"
#include "queue/calls.h"
#include "redis/server/query.h"

#define TIMEOUT_MS 2000

/* A queue while it is asked. */
struct asked {
    struct round *round;
    struct config *config; /* NULL: invalid */
    struct buffer errors;  /* of its file */
    struct queue queue;
    struct command command;
    struct query *query; /* NULL: it is not asked */
};

struct round {
    struct ev_loop *loop;
    struct asked *queues;
    size_t count, waiting; /* all; those that have not answered yet */
    round_answer *answer;
    size_t elements;
    void *context;
};

/* ---- files */

static int64_t at_most(int64_t ms)
{
    return ms < TIMEOUT_MS ? ms : TIMEOUT_MS;
}

static int load(struct asked *asked, const char *name)
{
    char *path = config_source_queue_path(name);
    int result = path ? 0 : -1;

    if (path && config_load(path, &asked->config, &asked->errors) == 0) {
        struct config *config = asked->config;
        config->redis.connect_timeout_ms = at_most(config->redis.connect_timeout_ms);
        config->redis.command_timeout_ms = at_most(config->redis.command_timeout_ms);
        result = queue_init(&asked->queue, config->queue.stream, config->queue.group);
    }
    free(path);
    return result;
}

struct round *round_new(char *const *names, size_t count)
{
    struct round *round = calloc(1, sizeof *round);

    if (!round) {
        return NULL;
    }
    round->loop = ev_loop_new(EVFLAG_AUTO);
    round->queues = calloc(count + 1, sizeof *round->queues);
    if (!round->loop || !round->queues) {
        round_free(round);
        return NULL;
    }
    for (; round->count < count; round->count++) {
        struct asked *asked = &round->queues[round->count];
        asked->round = round;
        if (load(asked, names[round->count]) != 0) {
            round->count++;
            round_free(round);
            return NULL;
        }
    }
    return round;
}

const struct config *round_config(const struct round *round, size_t index,
                                  const struct buffer **errors)
{
    *errors = &round->queues[index].errors;
    return round->queues[index].config;
}

/* ---- questions */

static bool is_answer(const struct round *round, const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements >= round->elements &&
           reply->element[0]->type == REDIS_REPLY_INTEGER &&
           reply->element[0]->integer == QUEUE_PROTOCOL;
}

static void on_answer(void *context, const struct redisReply *reply, enum redis_error error,
                      const char *why)
{
    struct asked *asked = context;
    struct round *round = asked->round;

    if (reply && !is_answer(round, reply)) {
        reply = NULL;
        error = REDIS_ERROR_OLD_LIBRARY;
        why = "the queue's library is of another version";
    }
    round->answer(round->context, (size_t)(asked - round->queues), reply, error, why);
    if (--round->waiting == 0) {
        ev_break(round->loop, EVBREAK_ALL);
    }
}

static int ask(struct asked *asked)
{
    char name[160];

    (void)snprintf(name, sizeof name, "leat:%s:status", asked->config->queue.name);
    query_free(asked->query);
    asked->query = query_start(asked->round->loop, &asked->config->redis, name, &asked->command,
                               on_answer, asked);
    if (!asked->query) {
        return -1;
    }
    asked->round->waiting++;
    return 0;
}

int round_ask(struct round *round, round_question *question, round_answer *answer, size_t elements,
              void *context)
{
    round->answer = answer;
    round->elements = elements;
    round->context = context;
    for (size_t i = 0; i < round->count; i++) {
        struct asked *asked = &round->queues[i];
        if (asked->config && question(context, i, &asked->queue, &asked->command) &&
            ask(asked) != 0) {
            return -1;
        }
    }
    if (round->waiting > 0) {
        (void)ev_run(round->loop, 0); /* its result only tells why it returned */
    }
    return 0;
}

void round_free(struct round *round)
{
    if (!round) {
        return;
    }
    for (size_t i = 0; i < round->count; i++) {
        struct asked *asked = &round->queues[i];
        query_free(asked->query);
        command_free(&asked->command);
        queue_free(&asked->queue);
        buffer_free(&asked->errors);
        config_free(asked->config);
    }
    free(round->queues);
    if (round->loop) {
        ev_loop_destroy(round->loop);
    }
    free(round);
}
