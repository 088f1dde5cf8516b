/*
 * leat conf: what all workers of a queue agree on.
 */
#include "cli/conf.h"

#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/units.h"
#include "cli/act.h"
#include "cli/output.h"
#include "cli/record.h"

static const char help[] =
    "Usage: leat conf [--json] [NAME VALUE]\n"
    "Show or set what all workers of the queue agree on. It is kept in Redis; the configuration\n"
    "files only say what the first worker begins with. Workers obey at their next call.\n"
    "\n"
    "  lease             how long a silent worker keeps its tasks, such as 60s; at least 1s. A\n"
    "                    shorter one counts for tasks of silent workers one old lease later\n"
    "  max_crashes       workers that a task may take down before it is a dead letter; at least 1\n"
    "  max_length        tasks that may wait; more are refused (75). 0 or none: no limit\n"
    "  dead_keep         how long dead letters are kept, such as 30d. 0 or none: for ever\n"
    "  dead_keep_number  how many dead letters are kept, the newest. 0 or none: all\n"
    "\n"
    "  --json            everything that is kept, as JSON: lease_ms, ...\n"
    "  -q, -c, -h        as in leat --help\n"
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

/* One value that people set, under its own name, and how it is kept. */
struct setting {
    const char *name, *key;
    bool is_duration, may_be_none;
    int64_t least;
    size_t offset; /* into struct config: what counts before a worker has begun */
};

static const struct setting settings[] = {
    {"lease", "lease_ms", true, false, 1000, offsetof(struct config, queue.lease_ms)},
    {"max_crashes", "max_crashes", false, false, 1, offsetof(struct config, queue.max_crashes)},
    {"max_length", "max_length", false, true, 0, offsetof(struct config, queue.max_length)},
    {"dead_keep", "dead_keep_ms", true, true, 0, offsetof(struct config, dead.keep_ms)},
    {"dead_keep_number", "dead_keep_number", false, true, 0,
     offsetof(struct config, dead.keep_number)},
};
#define SETTING_COUNT (sizeof settings / sizeof *settings)

/* NULL after saying that there is none of that name. */
static const struct setting *find_setting(const struct cli *cli, const char *name)
{
    const char *names[SETTING_COUNT];
    char hint[64];

    for (size_t i = 0; i < SETTING_COUNT; i++) {
        names[i] = settings[i].name;
        if (strcmp(name, names[i]) == 0)
            return &settings[i];
    }
    cli_suggest(name, names, SETTING_COUNT, hint, sizeof hint);
    (void)cli_usage(cli, "%s cannot be set;%s leat conf shows what can", name, hint);
    return NULL;
}

static int read_value(const struct cli *cli, const struct setting *setting, const char *text,
                      int64_t *value)
{
    int status;

    if (setting->may_be_none && strcmp(text, "none") == 0) {
        *value = 0;
        return EX_OK;
    }
    if (!setting->is_duration)
        return cli_integer(cli, setting->name, text, setting->least, value);
    status = cli_duration(cli, setting->name, text, value);
    if (status == EX_OK && *value < setting->least)
        return cli_usage(cli, "%s is at least 1s, not %s", setting->name, text);
    return status;
}

#define VALUE_SIZE 64

static void format_value(const struct setting *setting, int64_t value, char *text)
{
    /* a number fits */
    if (value == 0 && setting->may_be_none)
        (void)snprintf(text, VALUE_SIZE, "none");
    else if (setting->is_duration)
        units_format_duration(value, text, VALUE_SIZE);
    else
        (void)snprintf(text, VALUE_SIZE, "%lld", (long long)value);
}

static int64_t configured_value(const struct cli *cli, const struct setting *setting)
{
    int64_t value;

    memcpy(&value, (const char *)cli->config + setting->offset, sizeof value);
    return value;
}

void conf_compare(const struct cli *cli, const struct redisReply *conf, conf_visit *visit,
                  void *context)
{
    char agreed[VALUE_SIZE], configured[VALUE_SIZE];

    for (size_t i = 0; i < SETTING_COUNT; i++) {
        int64_t ours = configured_value(cli, &settings[i]);
        int64_t value = record_number(conf, settings[i].key, ours);
        if (value == ours)
            continue;
        format_value(&settings[i], value, agreed);
        format_value(&settings[i], ours, configured);
        visit(context, settings[i].name, agreed, configured);
    }
}

static void print_conf(const struct cli *cli, const struct redisReply *conf)
{
    bool begun = record_number(conf, "lease_ms", 0) > 0;

    /* failures show when stdout is flushed */
    if (!begun)
        (void)printf("no worker of %s has begun yet: its configuration will count\n",
                     cli->config->queue.name);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        int64_t value = configured_value(cli, &settings[i]);
        char text[VALUE_SIZE];
        if (begun)
            value = record_number(conf, settings[i].key, 0);
        format_value(&settings[i], value, text);
        (void)printf("%-17s %s\n", settings[i].name, text);
    }
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

static void record_setting(const struct cli *cli, const struct setting *setting, int64_t value)
{
    const struct operator_act act = {.event = "operator-conf"};
    char text[VALUE_SIZE];

    format_value(setting, value, text);
    act_record(cli, &act, "set %s to %s", setting->name, text);
}

static int call(struct cli *cli, const struct setting *setting, int64_t value, bool json)
{
    struct command command = {0};
    struct redisReply *reply;
    char number[32];
    int status = cli_connect(cli);

    if (status != EX_OK)
        return status;
    /* a number fits */
    (void)snprintf(number, sizeof number, "%lld", (long long)value);
    queue_conf(&command, &cli->queue, setting ? setting->key : NULL, number);
    reply = cli_call(cli, &command, setting ? "cannot set it" : "cannot read it", 1, &status);
    command_free(&command);
    if (!reply)
        return status;
    if (setting)
        record_setting(cli, setting, value);
    status = print_reply(cli, reply, json);
    freeReplyObject(reply);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    const struct setting *setting = NULL;
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
    if (argc > optind) {
        setting = find_setting(cli, argv[optind]);
        status = setting ? read_value(cli, setting, argv[optind + 1], &value) : EX_USAGE;
    }
    return status != EX_OK ? status : call(cli, setting, value, json);
}

const struct subcommand conf_command = {"conf", "show or set what all workers agree on", help, run};
