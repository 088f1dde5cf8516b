/*
 * leat metrics: the state of one queue or all, for Prometheus.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "cli/lib/queues.h"
#include "cli/status/round.h"
#include "cli/status/status.h"
#include "queue/calls.h"
#include "redis/value.h"
#include "view/lanes.h"
#include "view/metrics.h"

#define LANES_READ 1000 /* lanes among which the longest are sought */
#define LANES_ELEMENTS 3

static const char help[] =
    "Usage: leat metrics [--textfile FILE]\n"
    "Print metrics for Prometheus, in the OpenMetrics format: tasks by state, workers\n"
    "and ends by cause, and histograms of waiting, duration, CPU time and memory.\n"
    "\n"
    "Without -q and -c, on a host with several queues, print those of all queues.\n"
    "\n"
    "Options:\n"
    "  --textfile FILE  write to FILE as a whole, in the text format that the\n"
    "                   textfile collector of node_exporter reads\n"
    "  -q, -c, -h       see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat metrics\n"
    "  leat metrics --textfile /var/lib/prometheus/node-exporter/leat.prom\n"
    "\n"
    "Exit codes:\n"
    "  0   printed\n"
    "  64  wrong usage\n" CLI_EXITS
    "Queues that cannot be read have leat_up 0; the exit code is the highest of all.\n";

/* A queue whose state was read. */
struct reading {
    char *name; /* owned */
    struct redisReply *reply;
    struct status status;
    struct lanes lanes;
    int exit_status;
};

struct readings {
    struct reading *list;
    size_t count;
    const struct round *round; /* while several queues are asked */
    bool failed;               /* there was no memory */
};

static void free_readings(struct readings *readings)
{
    for (size_t i = 0; readings->list && i < readings->count; i++) {
        struct reading *reading = &readings->list[i];
        free(reading->name);
        status_free(&reading->status);
        lanes_free(&reading->lanes);
        freeReplyObject(reading->reply);
    }
    free(readings->list);
}

/* ---- one queue */

/* Reads a reply of leat_status, and owns it from now on. */
static int take_status(struct reading *reading, struct redisReply *reply, int64_t lease_ms)
{
    reading->reply = reply;
    return reply && status_read(reply, lease_ms, &reading->status) == 0 ? 0 : -1;
}

/* Takes the longest of the first lanes: all of them could be a million. */
static int take_lanes(struct reading *reading, const struct redisReply *reply)
{
    reading->lanes.most = METRICS_LANES;
    return lanes_begin(&reading->lanes) == 0 ? lanes_keep(&reading->lanes, reply->element[2]) : -1;
}

static bool has_lanes(const struct reading *reading)
{
    return reading->exit_status == EX_OK && status_figure(&reading->status, "lanes") > 0;
}

static void ask_lanes(struct command *command, const struct queue *queue)
{
    queue_lanes(command, queue, (struct bytes){"", 0}, LANES_READ);
}

/* Reads the state of the connected queue. Returns 0, or an exit status after printing the error. */
static int read_state(struct cli *cli, struct reading *reading)
{
    struct command command = {0};
    struct redisReply *reply;
    int status;

    reply = status_call(cli, &status);
    if (!reply) {
        return status;
    }
    if (take_status(reading, reply, cli->config->queue.lease_ms) != 0) {
        return cli_no_memory();
    }
    if (!has_lanes(reading)) {
        return EX_OK;
    }
    ask_lanes(&command, &cli->queue);
    reply = cli_call(cli, &command, "cannot read the lanes", LANES_ELEMENTS, &status);
    if (reply && take_lanes(reading, reply) != 0) {
        status = cli_no_memory();
    }
    freeReplyObject(reply);
    return status;
}

/* ---- all queues */

static void fail(struct reading *reading, enum redis_error error, const char *why)
{
    cli_error("%s: %s; %s", reading->name, why, redis_error_advice(error, false));
    reading->exit_status = cli_status_of(error);
}

static bool question_status(void *context, size_t index, const struct queue *queue,
                            struct command *command)
{
    (void)context;
    (void)index;
    queue_status(command, queue);
    return true;
}

static void answer_status(void *context, size_t index, const struct redisReply *reply,
                          enum redis_error error, const char *why)
{
    struct readings *readings = context;
    struct reading *reading = &readings->list[index];
    const struct buffer *errors;

    if (!reply) {
        fail(reading, error, why);
        return;
    }
    readings->failed |=
        take_status(reading, value_duplicate(reply),
                    round_config(readings->round, index, &errors)->queue.lease_ms) != 0;
}

static bool question_lanes(void *context, size_t index, const struct queue *queue,
                           struct command *command)
{
    const struct readings *readings = context;

    ask_lanes(command, queue);
    return has_lanes(&readings->list[index]);
}

static void answer_lanes(void *context, size_t index, const struct redisReply *reply,
                         enum redis_error error, const char *why)
{
    struct readings *readings = context;
    struct reading *reading = &readings->list[index];

    if (!reply) {
        fail(reading, error, why);
        return;
    }
    readings->failed |= take_lanes(reading, reply) != 0;
}

static int make_readings(struct readings *readings, char **names, size_t count)
{
    readings->list = calloc(count + 1, sizeof *readings->list);
    for (size_t i = 0; readings->list && i < count; i++) {
        struct reading *reading = &readings->list[i];
        const struct buffer *errors;
        readings->count++;
        reading->name = strdup(names[i]);
        if (!reading->name) {
            return -1;
        }
        if (!round_config(readings->round, i, &errors)) {
            reading->exit_status = cli_bad_config(errors);
        }
    }
    return readings->list ? 0 : -1;
}

static int read_all(struct readings *readings)
{
    struct round *round;
    char **names;
    int error;
    size_t count = queues_list(&names, &error);
    bool fine;

    if (count == 0) {
        return queues_none(error);
    }
    round = round_new(names, count);
    readings->round = round;
    fine = round && make_readings(readings, names, count) == 0 &&
           round_ask(round, question_status, answer_status, STATUS_ELEMENTS, readings) == 0 &&
           !readings->failed &&
           round_ask(round, question_lanes, answer_lanes, LANES_ELEMENTS, readings) == 0 &&
           !readings->failed;
    round_free(round);
    queues_free(names, count);
    return fine ? EX_OK : cli_no_memory();
}

static int read_one(struct cli *cli, struct readings *readings)
{
    struct reading *reading = calloc(1, sizeof *reading);
    int status;

    if (!reading) {
        return cli_no_memory();
    }
    *readings = (struct readings){.list = reading, .count = 1};
    status = cli_load(cli);
    if (status != EX_OK) {
        return status;
    }
    reading->name = strdup(cli->config->queue.name);
    if (!reading->name) {
        return cli_no_memory();
    }
    reading->exit_status = cli_connect(cli);
    if (reading->exit_status == EX_OK) {
        reading->exit_status = read_state(cli, reading);
    }
    return EX_OK;
}

static int append(const struct readings *readings, bool to_file, struct buffer *text)
{
    struct metrics_queue *queues = calloc(readings->count + 1, sizeof *queues);
    int result = -1;

    for (size_t i = 0; queues && i < readings->count; i++) {
        const struct reading *reading = &readings->list[i];
        bool was_read = reading->exit_status == EX_OK;
        queues[i] = (struct metrics_queue){.name = reading->name ? reading->name : "",
                                           .status = was_read ? &reading->status : NULL,
                                           .lanes = was_read ? &reading->lanes : NULL};
    }
    if (queues) {
        result = metrics_append(queues, readings->count,
                                to_file ? METRICS_TEXT : METRICS_OPENMETRICS, text);
    }
    free(queues);
    return result == 0 ? EX_OK : cli_no_memory();
}

static int cannot_write(const char *path)
{
    cli_error("cannot write %s: %s", path, strerror(errno));
    return EX_IOERR;
}

/* A collector must never read half a file: another one, whose name it does not look for, takes its
 * place. */
static int write_file(const char *path, const struct buffer *text)
{
    struct buffer making = BUFFER_INIT;
    FILE *file;
    int status = EX_OK;

    if (buffer_printf(&making, "%s.%ld.new", path, (long)getpid()) != 0) {
        return cli_no_memory();
    }
    (void)unlink(making.data); /* what an interrupted command has left */
    /* x: others may own the folder, and must not lead this to another file by a link */
    file = fopen(making.data, "wxe");
    if (!file) {
        status = cannot_write(making.data);
    } else {
        bool written = fwrite(text->data, 1, text->size, file) == text->size &&
                       fchmod(fileno(file), 0644) == 0;
        if (fclose(file) != 0 || !written || rename(making.data, path) != 0) {
            status = cannot_write(path);
            (void)unlink(making.data);
        }
    }
    buffer_free(&making);
    return status;
}

static int highest_status(const struct readings *readings)
{
    int highest = EX_OK;

    for (size_t i = 0; i < readings->count; i++) {
        int status = readings->list[i].exit_status;
        highest = status > highest ? status : highest;
    }
    return highest;
}

static int run(struct cli *cli, int argc, char **argv)
{
    const char *path = NULL;
    const struct cli_option known[] = {{"--textfile", .text = &path}, {0}};
    struct readings readings = {0};
    struct buffer text = BUFFER_INIT;
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, known);

    if (status != EX_OK) {
        return status;
    }
    status = queues_is_open(cli) ? read_all(&readings) : read_one(cli, &readings);
    status = status == EX_OK ? append(&readings, path != NULL, &text) : status;
    if (status == EX_OK) {
        status = path ? write_file(path, &text) : output_write(&text);
    }
    if (status == EX_OK) {
        status = highest_status(&readings);
    }
    buffer_free(&text);
    free_readings(&readings);
    return status;
}

const struct subcommand metrics_command = {"metrics", "Print metrics for Prometheus", help, run};
