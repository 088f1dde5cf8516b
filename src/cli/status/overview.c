/*
 * leat status for all queues of /etc/leat: loads their files and asks their servers side by side,
 * so that one that hangs does not delay the others.
 */
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/cli.h"
#include "cli/lib/queues.h"
#include "cli/status/overview.h"
#include "config/file/load.h"
#include "queue/calls.h"
#include "redis/server/query.h"

#define TIMEOUT_MS 2000

struct round;

/* A queue while it is asked. */
struct asked {
    struct round *round;
    struct overview_line *line;
    struct config *config; /* NULL: invalid */
    struct config_redis redis;
    struct queue queue;
    struct command command;
    struct query *query; /* NULL: it was not asked */
};

struct round {
    const struct status_limits *limits;
    struct ev_loop *loop;
    struct asked *queues;
    size_t count, waiting; /* all; those that have not answered yet */
    bool failed;           /* there was no memory */
};

static void note(struct overview_line *line, enum queue_state state, int exit_status)
{
    line->state = state;
    line->exit_status = exit_status;
}

/* ---- answers */

static void note_failure(struct overview_line *line, enum redis_error error, const char *why)
{
    note(line, queue_state_of_error(error), cli_status_of(error));
    /* a failed append marks the buffer */
    (void)buffer_printf(&line->reason, "%s; %s", why, redis_error_advice(error, false));
}

static int note_figures(const struct asked *asked, const struct status *status)
{
    struct overview_line *line = asked->line;

    line->ready = status_figure(status, "ready");
    line->running = status_figure(status, "running");
    line->delayed = status_figure(status, "delayed") + status_figure(status, "retrying");
    line->dead = status_figure(status, "dead");
    line->oldest_ms = line->ready > 0 ? status_figure(status, "oldest_ready_ms") : -1;
    line->live_workers = status->live_count;
    if (status_problems(status, asked->config->queue.group, asked->round->limits, &line->reason) !=
        0) {
        return -1;
    }
    if (line->reason.size > 0) {
        note(line, QUEUE_STATE_UNHEALTHY, STATUS_EXIT_UNHEALTHY);
    } else if (status->paused_ms > 0) {
        note(line, QUEUE_STATE_PAUSED, EX_OK);
    }
    line->page = status_json(status, &line->reason, line->name);
    return line->page ? 0 : -1;
}

static void read_answer(struct asked *asked, const struct redisReply *reply)
{
    struct status status;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < STATUS_ELEMENTS ||
        reply->element[0]->type != REDIS_REPLY_INTEGER ||
        reply->element[0]->integer != QUEUE_PROTOCOL) {
        note(asked->line, QUEUE_STATE_FAILED, EX_PROTOCOL);
        /* a failed append marks the buffer */
        (void)buffer_append_text(&asked->line->reason,
                                 "the queue's library is of another version: install the same "
                                 "version everywhere");
        return;
    }
    if (status_read(reply, asked->config->queue.lease_ms, &status) != 0) {
        asked->round->failed = true;
        return;
    }
    if (note_figures(asked, &status) != 0) {
        asked->round->failed = true;
    }
    status_free(&status);
}

static void on_answer(void *context, const struct redisReply *reply, enum redis_error error,
                      const char *why)
{
    struct asked *asked = context;
    struct round *round = asked->round;

    if (reply) {
        read_answer(asked, reply);
    } else {
        note_failure(asked->line, error, why);
    }
    if (--round->waiting == 0) {
        ev_break(round->loop, EVBREAK_ALL);
    }
}

/* ---- questions */

/* Only the first of its errors: leat -q NAME status shows all. */
static void note_invalid(struct overview_line *line, const struct buffer *errors)
{
    const char *end = errors->size > 0 ? memchr(errors->data, '\n', errors->size) : NULL;

    note(line, QUEUE_STATE_INVALID, EX_CONFIG);
    /* a failed append marks the buffer */
    if (end) {
        (void)buffer_append(&line->reason, errors->data, (size_t)(end - errors->data));
    } else {
        (void)buffer_append_text(&line->reason, "out of memory");
    }
}

static int load(struct asked *asked)
{
    struct buffer errors = BUFFER_INIT;
    char *path = config_source_queue_path(asked->line->name);
    int result = path ? 0 : -1;

    if (path && config_load(path, &asked->config, &errors) != 0) {
        note_invalid(asked->line, &errors);
    }
    buffer_free(&errors);
    free(path);
    return result;
}

static int64_t at_most(int64_t ms)
{
    return ms < TIMEOUT_MS ? ms : TIMEOUT_MS;
}

static int ask(struct asked *asked)
{
    const struct config *config = asked->config;
    char name[160];

    asked->redis = config->redis;
    asked->redis.connect_timeout_ms = at_most(config->redis.connect_timeout_ms);
    asked->redis.command_timeout_ms = at_most(config->redis.command_timeout_ms);
    if (queue_init(&asked->queue, config->queue.stream, config->queue.group) != 0) {
        return -1;
    }
    queue_status(&asked->command, &asked->queue);
    (void)snprintf(name, sizeof name, "leat:%s:status", config->queue.name);
    asked->query =
        query_start(asked->round->loop, &asked->redis, name, &asked->command, on_answer, asked);
    if (!asked->query) {
        return -1;
    }
    asked->round->waiting++;
    return 0;
}

static void free_round(struct round *round)
{
    for (size_t i = 0; round->queues && i < round->count; i++) {
        struct asked *asked = &round->queues[i];
        query_free(asked->query);
        command_free(&asked->command);
        queue_free(&asked->queue);
        config_free(asked->config);
    }
    free(round->queues);
    if (round->loop) {
        ev_loop_destroy(round->loop);
    }
}

/* Files are read before the first connection opens: a slow one must not use up another's time. */
static int ask_all(struct round *round, struct overview *overview)
{
    round->loop = ev_loop_new(EVFLAG_AUTO);
    round->queues = calloc(round->count + 1, sizeof *round->queues);
    if (!round->loop || !round->queues) {
        return -1;
    }
    for (size_t i = 0; i < round->count; i++) {
        round->queues[i] = (struct asked){.round = round, .line = &overview->lines[i]};
        if (load(&round->queues[i]) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < round->count; i++) {
        if (round->queues[i].config && ask(&round->queues[i]) != 0) {
            return -1;
        }
    }
    if (round->waiting > 0) {
        (void)ev_run(round->loop, 0); /* its result only tells why it returned */
    }
    return round->failed ? -1 : 0;
}

static int make_lines(struct overview *overview, char **names, size_t count)
{
    overview->lines = calloc(count + 1, sizeof *overview->lines);
    if (!overview->lines) {
        return -1;
    }
    for (; overview->count < count; overview->count++) {
        overview->lines[overview->count].name = strdup(names[overview->count]);
        if (!overview->lines[overview->count].name) {
            return -1;
        }
    }
    return 0;
}

int overview_ask(const struct status_limits *limits, struct overview *overview)
{
    struct round round = {.limits = limits};
    char **names;
    int error, status = EX_OK;

    *overview = (struct overview){0};
    round.count = queues_list(&names, &error);
    if (round.count == 0) {
        status = queues_none(error);
    } else if (make_lines(overview, names, round.count) != 0 || ask_all(&round, overview) != 0) {
        status = cli_no_memory();
    }
    free_round(&round);
    queues_free(names, round.count);
    return status;
}

int overview_exit_status(const struct overview *overview)
{
    int highest = EX_OK;

    for (size_t i = 0; i < overview->count; i++) {
        if (overview->lines[i].exit_status > highest) {
            highest = overview->lines[i].exit_status;
        }
    }
    return highest;
}

void overview_free(struct overview *overview)
{
    for (size_t i = 0; i < overview->count; i++) {
        free(overview->lines[i].name);
        buffer_free(&overview->lines[i].reason);
        json_decref(overview->lines[i].page);
    }
    free(overview->lines);
    *overview = (struct overview){0};
}
