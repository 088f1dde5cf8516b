/*
 * leat status for all queues of /etc/leat.
 */
#include "cli/status/overview.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/cli.h"
#include "cli/lib/queues.h"
#include "cli/status/round.h"
#include "queue/calls.h"

/* The object that takes the answers. */
struct asking {
    const struct status_limits *limits;
    const struct round *round;
    struct overview *overview;
    bool failed; /* there was no memory */
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

static int note_figures(const struct asking *asking, struct overview_line *line,
                        const struct config *config, const struct status *status)
{
    line->ready = status_figure(status, "ready");
    line->running = status_figure(status, "running");
    line->delayed = status_figure(status, "delayed") + status_figure(status, "retrying");
    line->dead = status_figure(status, "dead");
    line->oldest_ms = line->ready > 0 ? status_figure(status, "oldest_ready_ms") : -1;
    line->live_workers = status->live_count;
    if (status_problems(status, config->queue.group, asking->limits, &line->reason) != 0) {
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

static void on_answer(void *context, size_t index, const struct redisReply *reply,
                      enum redis_error error, const char *why)
{
    struct asking *asking = context;
    struct overview_line *line = &asking->overview->lines[index];
    const struct buffer *errors;
    const struct config *config = round_config(asking->round, index, &errors);
    struct status status;

    if (!reply) {
        note_failure(line, error, why);
        return;
    }
    if (status_read(reply, config->queue.lease_ms, &status) != 0) {
        asking->failed = true;
        return;
    }
    asking->failed |= note_figures(asking, line, config, &status) != 0;
    status_free(&status);
}

/* ---- questions */

static bool ask_status(void *context, size_t index, const struct queue *queue,
                       struct command *command)
{
    (void)context;
    (void)index;
    queue_status(command, queue);
    return true;
}

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

static int ask_all(const struct status_limits *limits, char **names, size_t count,
                   struct overview *overview)
{
    struct round *round = round_new(names, count);
    struct asking asking = {.limits = limits, .round = round, .overview = overview};
    int result = round ? make_lines(overview, names, count) : -1;

    for (size_t i = 0; result == 0 && i < count; i++) {
        const struct buffer *errors;
        if (!round_config(round, i, &errors)) {
            note_invalid(&overview->lines[i], errors);
        }
    }
    if (result == 0) {
        result = round_ask(round, ask_status, on_answer, STATUS_ELEMENTS, &asking);
    }
    round_free(round);
    return asking.failed ? -1 : result;
}

int overview_ask(const struct status_limits *limits, struct overview *overview)
{
    char **names;
    int error, status = EX_OK;
    size_t count = queues_list(&names, &error);

    *overview = (struct overview){0};
    if (count == 0) {
        status = queues_none(error);
    } else if (ask_all(limits, names, count, overview) != 0) {
        status = cli_no_memory();
    }
    queues_free(names, count);
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
