/*
 * leat drain and leat undrain.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/join.h"
#include "cli/control/pauses.h"
#include "cli/lib/output.h"
#include "cli/lib/text.h"
#include "cli/status/status.h"
#include "view/reply_fields.h"

#define PAUSES_SIZE 300
#define HOSTS_SIZE 1024
#define PREFIX "drain:"
#define EVERY_HOST "*"

static const char drain_help[] =
    "Usage: leat drain [OPTION]... HOST... | --all\n"
    "Stop the workers of a host from starting tasks of this queue. Running tasks\n"
    "continue, the workers stay up, and other hosts take the waiting tasks. HOST is a\n"
    "host as leat status shows it, or the full name of a worker.\n"
    "\n"
    "The host stays drained until leat undrain, also for workers that start there\n"
    "later.\n"
    "\n"
    "Options:\n"
    "  --all       drain every host, including hosts that join later\n"
    "  --json      print one JSON object per line: host, drained, changed\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails drain web1\n"
    "\n"
    "Exit codes:\n"
    "  0   the hosts are drained\n"
    "  64  wrong usage\n"
    "  68  no worker of the queue is on that host\n" CLI_EXITS;

static const char undrain_help[] =
    "Usage: leat undrain [OPTION]... HOST... | --all\n"
    "Let the workers of a drained host start tasks again, at once.\n"
    "\n"
    "Options:\n"
    "  --all       undrain every host, including hosts that were drained by name\n"
    "  --json      print one JSON object per line: host, drained, changed\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails undrain web1\n"
    "  leat -q thumbnails undrain --all\n"
    "\n"
    "Exit codes:\n"
    "  0   the hosts are not drained\n"
    "  64  wrong usage\n"
    "  68  no worker of the queue is on that host, and the host is not drained\n" CLI_EXITS;

struct drain {
    struct cli *cli;
    bool drain, json;
    bool all;                 /* hosts, instead of single ones */
    struct redisReply *reply; /* of leat_status, before any change */
    int status;               /* exit status of the last failure */
};

/* The host of a consumer, host:pid:nonce: the name without its last two parts. */
static void host_of(struct bytes consumer, char *host, size_t size)
{
    char *colon;

    bytes_copy(consumer, host, size);
    for (int parts = 0; parts < 2; parts++) {
        colon = strrchr(host, ':');
        if (!colon) {
            return;
        }
        *colon = '\0';
    }
}

static bool is_live(const struct drain *drain, size_t index)
{
    const struct redisReply *workers = drain->reply->element[3];
    int64_t lease_ms =
        fields_number(drain->reply->element[4], "lease_ms", drain->cli->config->queue.lease_ms);
    char heartbeat[32];

    bytes_copy(fields_value(fields_value_at(workers, index)), heartbeat, sizeof heartbeat);
    int64_t seen_ms = fields_bounded(strtoll(heartbeat, NULL, 10));
    return fields_integer(drain->reply->element[1], 0) - seen_ms <= lease_ms;
}

/* Finds the host by its name or by the whole name of a worker, also if its workers are silent. */
static bool find_host(const struct drain *drain, const char *name, char *host, size_t size)
{
    const struct redisReply *workers = drain->reply->element[3];

    for (size_t i = 0; i < fields_count(workers); i++) {
        struct bytes consumer = fields_name_at(workers, i);
        host_of(consumer, host, size);
        if (strcmp(host, name) == 0 || bytes_equal(consumer, name)) {
            return true;
        }
    }
    (void)snprintf(host, size, "%s", name); /* a name that is cut is too long for a host */
    return false;
}

static bool is_drained(const struct drain *drain, const char *host)
{
    char name[PAUSES_SIZE];

    (void)snprintf(name, sizeof name, PREFIX "%s", host);
    return fields_stamp(fields_bytes(drain->reply->element[4], name), NULL) > 0;
}

/* Lists the hosts with live workers, each once: "web1, web2". */
static void list_hosts(const struct drain *drain, char *text, size_t size)
{
    const struct redisReply *workers = drain->reply->element[3];

    text[0] = '\0';
    for (size_t i = 0; i < fields_count(workers); i++) {
        char host[256], other[256];
        bool known = !is_live(drain, i);
        host_of(fields_name_at(workers, i), host, sizeof host);
        for (size_t j = 0; j < i && !known; j++) {
            host_of(fields_name_at(workers, j), other, sizeof other);
            known = is_live(drain, j) && strcmp(host, other) == 0;
        }
        if (!known) {
            join_word(text, size, ", ", host);
        }
    }
}

static void unknown_host(struct drain *drain, const char *host)
{
    char hosts[HOSTS_SIZE];

    list_hosts(drain, hosts, sizeof hosts);
    if (*hosts) {
        cli_error("no worker of %s runs on %s; live workers run on: %s",
                  drain->cli->config->queue.name, host, hosts);
    } else {
        cli_error("no worker of %s runs on %s, and none is live", drain->cli->config->queue.name,
                  host);
    }
    drain->status = EX_NOHOST;
}

static int print_host(const struct drain *drain, const char *host, bool changed)
{
    const char *name = strcmp(host, EVERY_HOST) == 0 ? "all hosts" : host;
    bool still = !drain->all && is_drained(drain, EVERY_HOST);
    struct buffer line = BUFFER_INIT;
    int status;

    if (drain->json) {
        return output_json(json_pack("{s:s, s:b, s:b}", "host", host, "drained", (int)drain->drain,
                                     "changed", (int)changed),
                           false);
    }
    /* a failed append marks the buffer */
    (void)text_append(&line, name, strlen(name));
    (void)buffer_printf(&line, ": %s\n",
                        drain->drain   ? (changed ? "drained" : "already drained")
                        : !changed     ? "not drained"
                        : still        ? "no longer drained by its name"
                        : name != host ? "take tasks again"
                                       : "takes tasks again");
    status = output_write(&line);
    buffer_free(&line);
    return status;
}

/* Drains or undrains one host, or all for "*". Returns false after a failure. */
static bool set_host(struct drain *drain, const char *host)
{
    char name[PAUSES_SIZE];
    bool changed = false;
    int status;

    (void)snprintf(name, sizeof name, PREFIX "%s", host);
    status = pauses_set(drain->cli, name, drain->drain, &changed);
    status = status == EX_OK ? print_host(drain, host, changed) : status;
    if (status != EX_OK) {
        drain->status = status;
    }
    return status == EX_OK;
}

static bool drain_host(struct drain *drain, const char *name)
{
    char host[256];

    if (!find_host(drain, name, host, sizeof host) && !(!drain->drain && is_drained(drain, host))) {
        unknown_host(drain, name);
        return true;
    }
    if (!set_host(drain, host)) {
        return false;
    }
    if (!drain->drain && is_drained(drain, EVERY_HOST)) {
        cli_error("%s still starts no tasks: all hosts are drained; run leat undrain --all", host);
    }
    return true;
}

/* Drains all hosts at once. To undrain all, also undrains each single host. */
static void drain_all(struct drain *drain)
{
    const struct redisReply *conf = drain->reply->element[4];
    const size_t prefix = sizeof PREFIX - 1;
    bool fine = set_host(drain, EVERY_HOST);

    for (size_t i = 0; i < fields_count(conf) && fine && !drain->drain; i++) {
        char name[PAUSES_SIZE];
        bytes_copy(fields_name_at(conf, i), name, sizeof name);
        if (strncmp(name, PREFIX, prefix) == 0 && strcmp(name + prefix, EVERY_HOST) != 0) {
            fine = set_host(drain, name + prefix);
        }
    }
}

static int drain_hosts(struct drain *drain, char *const *hosts)
{
    int status = cli_connect(drain->cli);

    if (status != EX_OK) {
        return status;
    }
    drain->reply = status_call(drain->cli, &status);
    if (!drain->reply) {
        return status;
    }
    if (!*hosts) {
        drain_all(drain);
    }
    while (*hosts && drain_host(drain, *hosts)) {
        hosts++;
    }
    freeReplyObject(drain->reply);
    return drain->status;
}

static int run_drains(struct cli *cli, int argc, char **argv, bool drains)
{
    struct drain drain = {.cli = cli, .drain = drains};
    const struct cli_option options[] = {
        {"--all", .flag = &drain.all}, {"--json", .flag = &drain.json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    if (drain.all == (optind < argc)) {
        return cli_usage(cli, drain.all ? "give hosts or --all, not both"
                                        : "missing operand: give hosts, or --all");
    }
    for (int i = optind; i < argc; i++) {
        if (!*argv[i] || strcmp(argv[i], EVERY_HOST) == 0) {
            return cli_usage(cli, "'%s' is not a host; use --all for all hosts", argv[i]);
        }
    }
    return drain_hosts(&drain, argv + optind);
}

static int run_drain(struct cli *cli, int argc, char **argv)
{
    return run_drains(cli, argc, argv, true);
}

static int run_undrain(struct cli *cli, int argc, char **argv)
{
    return run_drains(cli, argc, argv, false);
}

const struct subcommand drain_command = {"drain", "Stop the workers of a host from starting tasks",
                                         drain_help, run_drain};
const struct subcommand undrain_command = {"undrain", "Let a drained host start tasks again",
                                           undrain_help, run_undrain};
