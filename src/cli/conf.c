/*
 * leat conf: what all workers of a queue agree on.
 */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/record.h"

static const char help[] =
    "Usage: leat conf [--json] [NAME VALUE]\n"
    "Show or set what all workers of the queue agree on. It is kept in Redis; the configuration\n"
    "files only say what the first worker begins with. Workers obey at their next call.\n"
    "\n"
    "  lease         how long a silent worker keeps its tasks, such as 60s; at least 1s. A\n"
    "                shorter one counts for tasks of silent workers one old lease later\n"
    "  max_crashes   workers that a task may take down before it is a dead letter; at least 1\n"
    "  max_length    tasks that may wait; more are refused (75). 0 or none: no limit\n"
    "\n"
    "  --json        everything that is kept, as JSON: lease_ms, ...\n"
    "  -q, -c, -h    as in leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails conf\n"
    "  leat -q thumbnails conf max_length 100000\n"
    "\n"
    "Exit codes: 0 done; 64 usage; 65 the value was refused; 69 Redis cannot be reached; 77\n"
    "denied by Redis; 78 configuration.\n";

enum { OPTION_JSON = 256 };

static const struct option options_table[] = {
    CLI_COMMON_OPTIONS,
    {"json", no_argument, NULL, OPTION_JSON},
    {0},
};

static const char *const names[] = {"lease", "max_crashes", "max_length"};
#define NAME_COUNT (sizeof names / sizeof *names)

static int check_name(const struct cli *cli, const char *name)
{
    char hint[64];

    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (strcmp(name, names[i]) == 0)
            return EX_OK;
    }
    cli_suggest(name, names, NAME_COUNT, hint, sizeof hint);
    return cli_usage(cli, "%s cannot be set;%s it is lease, max_crashes or max_length", name, hint);
}

static int read_value(const struct cli *cli, const char *name, const char *text, int64_t *value)
{
    int status = check_name(cli, name);

    if (status != EX_OK)
        return status;
    if (strcmp(name, "lease") == 0) {
        status = cli_duration(cli, name, text, value);
        if (status == EX_OK && *value < 1000)
            return cli_usage(cli, "a lease is at least 1s, not %s", text);
        return status;
    }
    if (strcmp(name, "max_length") == 0 && strcmp(text, "none") == 0) {
        *value = 0;
        return EX_OK;
    }
    return cli_integer(cli, name, text, strcmp(name, "max_crashes") == 0 ? 1 : 0, value);
}

static void print_conf(const struct cli *cli, const struct redisReply *conf)
{
    int64_t lease_ms = record_number(conf, "lease_ms", 0);
    int64_t max_crashes = record_number(conf, "max_crashes", 0);
    int64_t max_length = record_number(conf, "max_length", 0);
    char text[64];

    /* failures show when stdout is flushed */
    if (lease_ms == 0)
        (void)printf("no worker of %s has begun yet: its configuration will count\n",
                     cli->config->queue.name);
    units_format_duration(lease_ms > 0 ? lease_ms : cli->config->queue.lease_ms, text, sizeof text);
    (void)printf("lease        %s\n", text);
    (void)printf("max_crashes  %lld\n",
                 (long long)(max_crashes > 0 ? max_crashes : cli->config->queue.max_crashes));
    if (max_length == 0 && lease_ms == 0)
        max_length = cli->config->queue.max_length;
    if (max_length > 0)
        (void)printf("max_length   %lld\n", (long long)max_length);
    else
        (void)puts("max_length   none");
}

/* The reply is PROTOCOL and then names and values: a record behind its first element. */
static int print_reply(const struct cli *cli, const struct redisReply *reply, bool json)
{
    struct redisReply conf = *reply;

    conf.element = reply->element + 1;
    conf.elements = reply->elements - 1;
    if (json)
        return output_json(record_json(&conf), true);
    print_conf(cli, &conf);
    return EX_OK;
}

static int call(struct cli *cli, const char *name, int64_t value, bool json)
{
    struct command command = {0};
    struct redisReply *reply;
    char number[32];
    int status = cli_connect(cli);

    if (status != EX_OK)
        return status;
    /* a number fits */
    (void)snprintf(number, sizeof number, "%lld", (long long)value);
    if (name && strcmp(name, "lease") == 0)
        name = "lease_ms";
    queue_conf(&command, &cli->queue, name, number);
    reply = cli_call(cli, &command, name ? "cannot set it" : "cannot read it", 1, &status);
    command_free(&command);
    if (!reply)
        return status;
    status = print_reply(cli, reply, json);
    freeReplyObject(reply);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    bool json = false;
    int64_t value = 0;
    int letter, status = EX_OK;

    while ((letter = cli_option(cli, argc, argv, ":" CLI_COMMON_LETTERS, options_table, &status)) !=
           CLI_OPTION_END) {
        if (letter == CLI_OPTION_STOP)
            return status;
        json = true;
    }
    if (argc - optind != 0 && argc - optind != 2)
        return cli_usage(cli, "give a name and a value, or nothing to see all");
    if (argc > optind)
        status = read_value(cli, argv[optind], argv[optind + 1], &value);
    return status != EX_OK ? status : call(cli, argc > optind ? argv[optind] : NULL, value, json);
}

const struct subcommand conf_command = {"conf", "show or set what all workers agree on", help, run};
