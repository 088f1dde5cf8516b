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
#include "cli/status/status.h"
#include "config/file/load.h"
#include "queue/calls.h"
#include "view/lanes.h"
#include "view/metrics.h"

#define TIMEOUT_MS 2000
#define LANES_READ 1000 /* lanes among which the longest are sought */

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

/* Reads the longest of the first lanes: all of them could be a million. */
static int read_lanes(struct cli *cli, struct lanes *lanes)
{
    struct command command = {0};
    struct redisReply *reply;
    int status;

    lanes->most = METRICS_LANES;
    if (lanes_begin(lanes) != 0) {
        return cli_no_memory();
    }
    queue_lanes(&command, &cli->queue, (struct bytes){"", 0}, LANES_READ);
    reply = cli_call(cli, &command, "cannot read the lanes", 3, &status);
    if (reply && lanes_keep(lanes, reply->element[2]) != 0) {
        status = cli_no_memory();
    }
    freeReplyObject(reply);
    return status;
}

/* Reads the state of the connected queue. Returns 0, or an exit status after printing the error. */
static int read_state(struct cli *cli, struct reading *reading)
{
    int status;

    reading->reply = status_call(cli, &status);
    if (!reading->reply) {
        return status;
    }
    if (status_read(reading->reply, cli->config->queue.lease_ms, &reading->status) != 0) {
        return cli_no_memory();
    }
    return status_figure(&reading->status, "lanes") > 0 ? read_lanes(cli, &reading->lanes) : EX_OK;
}

/* Loads the file of one of several queues, and bounds the time that its server may take. */
static int load(const char *name, struct config **config)
{
    struct buffer errors = BUFFER_INIT;
    char *path = config_source_queue_path(name);
    int status = path ? EX_OK : cli_no_memory();

    if (path && config_load(path, config, &errors) != 0) {
        cli_error("%.*s", (int)errors.size, errors.size > 0 ? errors.data : "");
        status = EX_CONFIG;
    } else if (path) {
        struct config_redis *redis = &(*config)->redis;
        redis->connect_timeout_ms =
            redis->connect_timeout_ms < TIMEOUT_MS ? redis->connect_timeout_ms : TIMEOUT_MS;
        redis->command_timeout_ms =
            redis->command_timeout_ms < TIMEOUT_MS ? redis->command_timeout_ms : TIMEOUT_MS;
    }
    buffer_free(&errors);
    free(path);
    return status;
}

static int read_named(const struct cli *cli, struct reading *reading)
{
    struct cli one = {.subcommand = cli->subcommand};
    enum redis_error error;
    char why[256];
    int status = load(reading->name, &one.config);

    if (status == EX_OK && cli_try_connect(&one, &error, why, sizeof why) != 0) {
        cli_error("%s: %s", reading->name, why);
        status = cli_status_of(error);
    }
    status = status == EX_OK ? read_state(&one, reading) : status;
    cli_free(&one);
    return status;
}

static int read_all(const struct cli *cli, struct readings *readings)
{
    char **names;
    int error;
    size_t count = queues_list(&names, &error);

    if (count == 0) {
        return queues_none(error);
    }
    readings->list = calloc(count + 1, sizeof *readings->list);
    for (size_t i = 0; readings->list && i < count; i++) {
        struct reading *reading = &readings->list[i];
        readings->count++;
        reading->name = strdup(names[i]);
        reading->exit_status = reading->name ? read_named(cli, reading) : cli_no_memory();
    }
    queues_free(names, count);
    return readings->list ? EX_OK : cli_no_memory();
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
    file = fopen(making.data, "we");
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
    status = queues_is_open(cli) ? read_all(cli, &readings) : read_one(cli, &readings);
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
