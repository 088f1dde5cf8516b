/*
 * leat conf: shows and changes the shared settings of a queue.
 */
#include "cli/control/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/units.h"
#include "cli/lib/audit.h"
#include "cli/lib/output.h"
#include "cli/lib/queues.h"
#include "cli/lib/text.h"
#include "config/types/history_rule.h"
#include "config/types/limits.h"
#include "config/types/scalar.h"
#include "config/types/shared_setting.h"
#include "queue/calls.h"
#include "queue/shared/limits.h"
#include "view/reply_fields.h"
#include "view/reply_json.h"

static const char help[] =
    "Usage: leat conf [OPTION]... [NAME VALUE]\n"
    "       leat conf [OPTION]... --apply\n"
    "Show or change the settings that all workers of the queue share. Redis stores\n"
    "them; a worker sets only those that nobody has set yet, from its file.\n"
    "\n"
    "Settings:\n"
    "  lease             how long a silent worker keeps its tasks; at least 1s, and\n"
    "                    more than twice the kill_grace of each worker\n"
    "  max_crashes       worker crashes after which a task is dead-lettered; at\n"
    "                    least 1\n"
    "  max_length        tasks that wait, or run from the stream; leat refuses more,\n"
    "                    XADD does not. 0 or none: no limit\n"
    "  max_task          largest task, such as 16M; larger ones are refused. At\n"
    "                    least 64K; 0 or none: no limit\n"
    "  history           ended tasks to keep for leat list, show and report: a number\n"
    "                    up to 100000, or an age such as 7d. 0 or none: none\n"
    "  dead_keep         age at which dead letters are deleted. 0 or none: never\n"
    "  dead_keep_number  dead letters to keep, the newest. 0 or none: all\n"
    "  rate              starts of all workers together: 20/s, 100/m, 5000/h; none:\n"
    "                    no limit\n"
    "  burst             starts at once after a time without starts\n"
    "  lanes_only        lanes that tasks may name: any, or named: those with\n"
    "                    settings\n"
    "  lane:NAME         weight, max_running, rate and burst of a lane, such as\n"
    "                    '2, 10' or 'strict, -, 5/s'; none: those of lane:*\n"
    "  lane:*            default for lanes without settings of their own; none:\n"
    "                    weight 1, no limits\n"
    "\n"
    "Options:\n"
    "  --apply     set all settings to the values in the configuration file\n"
    "  --json      print everything that is stored as JSON\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails conf\n"
    "  leat -q thumbnails conf max_length 100000\n"
    "  leat -q thumbnails conf lane:archive '0.5, 3'\n"
    "\n"
    "Exit codes:\n"
    "  0   success\n"
    "  64  wrong usage, or a value that is malformed or out of range\n"
    "  65  the lease is too short, or Redis refused the value\n" CLI_EXITS;

#define LANE "lane:"

/* ---- values as people write them, and as Redis stores them */

static bool is_lane(const char *name)
{
    return strncmp(name, LANE, sizeof LANE - 1) == 0;
}

/* Checks the length of a lane's name. Returns false after printing the error. */
static bool is_lane_name(const struct cli *cli, const char *name)
{
    size_t size = strlen(name) - strlen(LANE);

    if (size > 0 && size <= QUEUE_MAX_LANE) {
        return true;
    }
    (void)cli_usage(cli, "the name of a lane has 1 to %d bytes", QUEUE_MAX_LANE);
    return false;
}

/* Returns NULL after printing that there is no such setting. */
static const struct shared_setting *find_setting(const struct cli *cli, const char *name)
{
    const char *names[SHARED_SETTINGS + 1];
    char hint[64];

    for (size_t i = 0; i < SHARED_SETTINGS; i++) {
        names[i] = shared_settings[i].name;
        if (strcmp(name, names[i]) == 0) {
            return &shared_settings[i];
        }
    }
    names[SHARED_SETTINGS] = LANE "NAME";
    cli_suggest(name, names, SHARED_SETTINGS + 1, hint, sizeof hint);
    (void)cli_usage(cli, "unknown setting: %s;%s leat conf lists all", name, hint);
    return NULL;
}

/* Parses the value without looking at its range. Returns 0 or -1. */
static int parse_number(const struct shared_setting *setting, const char *text, int64_t *value)
{
    switch (setting->kind) {
    case SHARED_DURATION:
        return units_parse_duration(text, value);
    case SHARED_SIZE:
        return units_parse_size(text, value);
    case SHARED_NUMBER:
    case SHARED_HISTORY:
    case SHARED_RATE:
    case SHARED_LANES:
        break;
    }
    return units_parse_integer(text, 0, INT64_MAX, value);
}

/* Names the values that the setting takes. */
static int refuse_number(const struct cli *cli, const struct shared_setting *setting,
                         const char *text)
{
    static const struct {
        const char *kind, *example;
    } forms[] = {
        [SHARED_DURATION] = {"duration", ", such as 30s, 5m or 1h30m"},
        [SHARED_NUMBER] = {"number", ""},
        [SHARED_SIZE] = {"size", ", such as 16M"},
    };
    const struct table_row *row = shared_setting_row(setting);
    char least[SHARED_TEXT_SIZE], most[SHARED_TEXT_SIZE];

    scalar_format_limit(row, row->low, least, sizeof least);
    scalar_format_limit(row, row->high, most, sizeof most);
    return cli_usage(cli, "%s: invalid %s '%s'; use one from %s to %s%s%s", setting->name,
                     forms[setting->kind].kind, text, least, most, forms[setting->kind].example,
                     setting->may_be_none ? ", or none" : "");
}

/* Appends the value as it is stored. A failed append marks `stored`. */
static int read_number(const struct cli *cli, const struct shared_setting *setting,
                       const char *text, struct buffer *stored)
{
    const struct table_row *row = shared_setting_row(setting);
    int64_t value;

    if (parse_number(setting, text, &value) != 0 || value > row->high ||
        (value < row->low && !(value == 0 && setting->may_be_none))) {
        return refuse_number(cli, setting, text);
    }
    (void)buffer_printf(stored, "%lld", (long long)value);
    return EX_OK;
}

/* The same for a rate or the settings of a lane. name is for the message. */
static int read_limit(const struct cli *cli, const char *name, const char *text,
                      struct buffer *stored)
{
    struct buffer why = BUFFER_INIT;
    char *rate = NULL;
    int status = EX_OK;

    if (is_lane(name)) {
        status = limits_settings(text, stored, &why);
    } else if ((status = limits_set_rate(&rate, text, &why)) == 0) {
        (void)buffer_append_text(stored, rate);
    }
    if (status != 0 && why.failed) {
        status = cli_no_memory();
    } else if (status != 0) {
        status = cli_usage(cli, "%s: %.*s", name, (int)why.size, why.data);
    }
    buffer_free(&why);
    free(rate);
    return status;
}

static int read_lane_kind(const struct cli *cli, const struct shared_setting *setting,
                          const char *text, struct buffer *stored)
{
    if (strcmp(text, "any") != 0 && strcmp(text, "named") != 0) {
        return cli_usage(cli, "%s: invalid value '%s'; use any or named", setting->name, text);
    }
    (void)buffer_append_text(stored, text); /* checked by the caller */
    return EX_OK;
}

static int read_history(const struct cli *cli, const struct shared_setting *setting,
                        const char *text, struct buffer *stored)
{
    char normal[SHARED_TEXT_SIZE];
    int64_t value;

    if (history_rule_parse(text, &value) != 0) {
        return cli_usage(cli, "%s: invalid value '%s'; use %s", setting->name, text,
                         HISTORY_RULE_FORMS);
    }
    history_rule_format(value, normal, sizeof normal);
    (void)buffer_append_text(stored, normal); /* checked by the caller */
    return EX_OK;
}

/* Reads a value in the form of its kind. setting: NULL for a lane. */
static int read_value(const struct cli *cli, const struct shared_setting *setting, const char *name,
                      const char *text, struct buffer *stored)
{
    if (!setting || setting->kind == SHARED_RATE) {
        return read_limit(cli, name, text, stored);
    }
    if (setting->kind == SHARED_LANES) {
        return read_lane_kind(cli, setting, text, stored);
    }
    return setting->kind == SHARED_HISTORY ? read_history(cli, setting, text, stored)
                                           : read_number(cli, setting, text, stored);
}

/* Reads a value. Returns the key of the setting, or NULL after printing the error and setting
 * *status. */
static const char *read_setting(const struct cli *cli, const char *name, const char *text,
                                struct buffer *stored, int *status)
{
    const struct shared_setting *setting = is_lane(name) ? NULL : find_setting(cli, name);
    bool none = strcmp(text, "none") == 0;
    const char *key = setting ? setting->key : is_lane(name) ? name : NULL;

    *status = EX_USAGE;
    if (!key || (!setting && !is_lane_name(cli, name))) {
        return NULL;
    }
    *status = EX_OK;
    if (none && (!setting || setting->kind == SHARED_RATE)) {
        (void)buffer_append(stored, "", 0); /* "" is none */
    } else if (none && setting->may_be_none) {
        (void)buffer_append_text(stored, "0"); /* checked below */
    } else {
        *status = read_value(cli, setting, name, text, stored);
    }
    if (*status == EX_OK && buffer_append(stored, "", 1) != 0) {
        *status = cli_no_memory();
    }
    return *status == EX_OK ? key : NULL;
}

/* Formats a stored value as people write it. setting: NULL for a lane, whose parts are bounded and
 * fit. */
static void format_any(const struct shared_setting *setting, const char *stored, char *text,
                       size_t size)
{
    if (setting) {
        shared_setting_show(setting, stored, text);
    } else {
        (void)snprintf(text, size, "%s", *stored ? stored : "none");
    }
}

/* The stored value. Returns false if there is none. */
static bool shared_value(const struct redisReply *conf, const char *key, char *stored, size_t size)
{
    for (size_t i = 0; i < fields_count(conf); i++) {
        if (bytes_equal(fields_name_at(conf, i), key)) {
            bytes_copy(fields_value(fields_value_at(conf, i)), stored, size);
            return true;
        }
    }
    return false;
}

/* ---- comparison with the configuration */

/* A value of the file that is not the queue's, both as Redis would store them. */
struct difference {
    const struct shared_setting *setting; /* NULL: a lane */
    const char *name, *key;
    const char *shared; /* NULL: the queue has none */
    const char *configured;
};

typedef void difference_visit(void *context, const struct difference *difference);

static void compare_value(const struct redisReply *conf, struct difference *difference,
                          difference_visit *visit, void *context)
{
    char shared[4 * SHARED_TEXT_SIZE];
    bool is_there = shared_value(conf, difference->key, shared, sizeof shared);

    if (!is_there || strcmp(shared, difference->configured) != 0) {
        difference->shared = is_there ? shared : NULL;
        visit(context, difference);
    }
}

static void each_difference(const struct cli *cli, const struct redisReply *conf,
                            difference_visit *visit, void *context)
{
    for (size_t i = 0; i < SHARED_SETTINGS; i++) {
        char configured[SHARED_TEXT_SIZE];
        struct difference difference = {&shared_settings[i], shared_settings[i].name,
                                        shared_settings[i].key, NULL, configured};
        shared_setting_configured(&shared_settings[i], cli->config, configured);
        compare_value(conf, &difference, visit, context);
    }
    for (char *const *lane = cli->config->lanes.list; lane && *lane; lane++) {
        char name[sizeof LANE + QUEUE_MAX_LANE];
        struct difference difference = {NULL, name, name, NULL, NULL};
        int length = (int)limits_split_lane(*lane, &difference.configured);
        (void)snprintf(name, sizeof name, LANE "%.*s", length, *lane);
        compare_value(conf, &difference, visit, context);
    }
}

struct comparison {
    conf_visit *visit;
    void *context;
};

static void show_difference(void *context, const struct difference *difference)
{
    const struct comparison *comparison = context;
    char shared[4 * SHARED_TEXT_SIZE], configured[4 * SHARED_TEXT_SIZE];

    if (!difference->shared) {
        return;
    }
    format_any(difference->setting, difference->shared, shared, sizeof shared);
    format_any(difference->setting, difference->configured, configured, sizeof configured);
    comparison->visit(comparison->context, difference->name, shared, configured);
}

void conf_compare(const struct cli *cli, const struct redisReply *conf, conf_visit *visit,
                  void *context)
{
    struct comparison comparison = {visit, context};

    each_difference(cli, conf, show_difference, &comparison);
}

/* ---- output */

static void print_line(struct bytes name, struct bytes value)
{
    struct buffer line = BUFFER_INIT;

    /* a failed append marks the buffer; cli_flush reports write errors */
    (void)text_append(&line, name.data, name.size);
    for (size_t width = line.size; width < 17; width++) {
        (void)buffer_append_text(&line, " ");
    }
    (void)buffer_append_text(&line, " ");
    (void)text_append(&line, value.data, value.size);
    (void)buffer_append_text(&line, "\n");
    (void)output_write(&line);
    buffer_free(&line);
}

static int compare_names(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Prints the stored settings of lanes, sorted by name. */
static int print_shared_lanes(const struct redisReply *conf)
{
    size_t count = 0;
    struct bytes(*lanes)[2] = calloc(fields_count(conf) + 1, sizeof *lanes);

    if (!lanes) {
        return cli_no_memory();
    }
    for (size_t i = 0; i < fields_count(conf); i++) {
        struct bytes name = fields_name_at(conf, i);
        struct bytes value = fields_value(fields_value_at(conf, i));
        if (name.size > 5 && memcmp(name.data, LANE, 5) == 0 && value.size > 0) {
            lanes[count][0] = name;
            lanes[count++][1] = value;
        }
    }
    qsort(lanes, count, sizeof *lanes, compare_names);
    for (size_t i = 0; i < count; i++) {
        print_line(lanes[i][0], lanes[i][1]);
    }
    free(lanes);
    return EX_OK;
}

/* Prints the lanes of the configuration for which no settings are stored. */
static void print_configured_lanes(const struct cli *cli, const struct redisReply *conf)
{
    for (char *const *lane = cli->config->lanes.list; lane && *lane; lane++) {
        char name[sizeof LANE + QUEUE_MAX_LANE], stored[4 * SHARED_TEXT_SIZE];
        const char *value;
        int length = (int)limits_split_lane(*lane, &value);

        (void)snprintf(name, sizeof name, LANE "%.*s", length, *lane);
        if (!shared_value(conf, name, stored, sizeof stored)) {
            print_line(bytes_of(name), bytes_of(value));
        }
    }
}

static int print_conf(const struct cli *cli, const struct redisReply *conf)
{
    bool has_run = fields_number(conf, "lease_ms", 0) > 0;
    int status;

    if (!has_run && output_printf("no worker of %s has run yet; the configuration of the first one "
                                  "applies to what is not set\n",
                                  cli->config->queue.name) != EX_OK) {
        return EX_OSERR;
    }
    for (size_t i = 0; i < SHARED_SETTINGS; i++) {
        char stored[SHARED_TEXT_SIZE], text[SHARED_TEXT_SIZE];
        if (!shared_value(conf, shared_settings[i].key, stored, sizeof stored)) {
            shared_setting_configured(&shared_settings[i], cli->config, stored);
        }
        shared_setting_show(&shared_settings[i], stored, text);
        print_line(bytes_of(shared_settings[i].name), bytes_of(text));
    }
    status = print_shared_lanes(conf);
    if (status == EX_OK && !has_run) {
        print_configured_lanes(cli, conf);
    }
    return status;
}

/* A reply has the protocol version, and then names and values. */
static struct redisReply conf_of(const struct redisReply *reply)
{
    struct redisReply conf = *reply;

    conf.element = reply->element + 1;
    conf.elements = reply->elements - 1;
    return conf;
}

static int print_reply(const struct cli *cli, const struct redisReply *reply, bool json)
{
    struct redisReply conf = conf_of(reply);

    return json ? output_json(fields_json(&conf), true) : print_conf(cli, &conf);
}

/* Writes the audit record. name: as typed. */
static void record_change(const struct cli *cli, const char *name, const char *stored)
{
    const struct audit act = {.event = "operator-conf"};
    const struct shared_setting *setting = is_lane(name) ? NULL : find_setting(cli, name);
    char text[4 * SHARED_TEXT_SIZE];

    format_any(setting, stored, text, sizeof text);
    audit_record(cli, &act, "set %s to %s", name, text);
}

/* The change to make. */
struct change {
    const char *name, *key; /* key NULL: only show */
    struct buffer stored;
};

/* Sets stored, or only reads if key is NULL. Returns all settings for freeReplyObject, or NULL with
 * *status after printing the error. */
static struct redisReply *call(struct cli *cli, const char *name, const char *key,
                               const char *stored, int *status)
{
    struct command command = {0};
    struct redisReply *reply;

    *status = EX_OK;
    if (key && strcmp(key, "lease_ms") == 0) {
        *status = conf_check_lease(cli, strtoll(stored, NULL, 10));
    }
    if (*status != EX_OK) {
        return NULL;
    }
    queue_conf(&command, &cli->queue, key, stored);
    reply = cli_call(cli, &command, key ? "cannot change the setting" : "cannot read the settings",
                     1, status);
    if (reply && key) {
        record_change(cli, name, stored);
    }
    return reply;
}

struct application {
    struct cli *cli;
    int status;
};

static void apply_one(void *context, const struct difference *difference)
{
    struct application *application = context;
    struct redisReply *reply;

    if (application->status == EX_OK) {
        reply = call(application->cli, difference->name, difference->key, difference->configured,
                     &application->status);
        freeReplyObject(reply);
    }
}

/* Sets each value of the file that is not the queue's. */
static int apply(struct cli *cli)
{
    struct application application = {cli, EX_OK};
    struct redisReply *reply = call(cli, NULL, NULL, NULL, &application.status);

    if (reply) {
        struct redisReply conf = conf_of(reply);
        each_difference(cli, &conf, apply_one, &application);
        freeReplyObject(reply);
    }
    return application.status;
}

static int set_and_print(struct cli *cli, const struct change *change, bool applies, bool json)
{
    struct redisReply *reply;
    int status = cli_connect(cli);

    if (status == EX_OK && applies) {
        status = apply(cli);
    }
    if (status != EX_OK) {
        return status;
    }
    reply = call(cli, change->name, change->key, change->stored.data, &status);
    if (reply) {
        status = print_reply(cli, reply, json);
        freeReplyObject(reply);
    }
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct change change = {0};
    bool json = false, applies = false;
    const struct cli_option options[] = {
        {"--apply", .flag = &applies}, {"--json", .flag = &json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    if (applies && argc > optind) {
        return cli_usage(cli, "--apply takes no name and value; remove one of them");
    }
    if (applies && !queues_reads_file(cli)) {
        return cli_usage(cli, "--apply requires a configuration file; name it with -c FILE");
    }
    if (argc - optind != 0 && argc - optind != 2) {
        return cli_usage(cli, argc - optind == 1 ? "missing operand: give a name and a value"
                                                 : "give only one name and one value");
    }
    if (argc > optind) {
        change.name = argv[optind];
        change.key = read_setting(cli, change.name, argv[optind + 1], &change.stored, &status);
    }
    status = status == EX_OK ? set_and_print(cli, &change, applies, json) : status;
    buffer_free(&change.stored);
    return status;
}

const struct subcommand conf_command = {"conf", "Show or change the shared settings of the queue",
                                        help, run};
