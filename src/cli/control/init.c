/*
 * leat init: loads the function library and creates the consumer group, for workers that may not;
 * or makes the service of a queue on this host.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/control/service.h"
#include "cli/lib/audit.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "config/types/secret.h"
#include "queue/calls.h"
#include "queue/library.h"
#include "queue/replies.h"
#include "view/reply_fields.h"

static const char init_help[] =
    "Usage: leat init [OPTION]...\n"
    "       leat init --service QUEUE [--shared] [--move]\n"
    "Load leat's function library into Redis, unless it is up to date, and create the\n"
    "queue's consumer group, unless it exists.\n"
    "\n"
    "Workers do both themselves. If [queue] load_library is never, an administrator\n"
    "runs leat init once, and again before each upgrade of the workers.\n"
    "\n"
    "With --service, give the worker of a queue on this host a user of its own,\n"
    "leat-QUEUE, and write " LEAT_SYSCONFDIR "/leat/QUEUE.ini if it is missing. Needs root; does\n"
    "not contact Redis.\n"
    "\n"
    "Options:\n"
    "  --service QUEUE       make the user and the unit's drop-in for this queue\n"
    "  --shared              let it run as the user leat, which queues share\n"
    "  --move                stop a running worker to change its user, then start it\n"
    "  --user NAME           log in as this ACL user, not as the one of the\n"
    "                        configuration\n"
    "  --password-file FILE  read the password from FILE, which others must not be\n"
    "                        able to access\n"
    "  --json                print JSON: version, loaded, group_made\n"
    "  -q, -c, -h            see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat init --service thumbnails\n"
    "  leat -q thumbnails init --user thumbnails-admin \\\n"
    "      --password-file /root/redis-admin\n"
    "\n"
    "Exit codes:\n"
    "  0   the library and the group, or the service, are in place\n"
    "  64  wrong usage\n"
    "  69  Redis or systemd cannot be reached\n"
    "  71  the user cannot be made, or systemd refuses a command\n"
    "  73  a file cannot be written, or the name of the user or group is taken\n"
    "  74  the output cannot be written\n"
    "  75  Redis is busy, or leatd runs and --move is missing; try again\n"
    "  77  Redis denied access, or you are not root\n"
    "  78  the configuration is wrong\n";

struct init {
    const char *user, *password_file;
    bool json;
    struct service_options service;
};

/* Returns EX_USAGE after printing the error if options do not fit together. */
static int check_options(const struct cli *cli, const struct init *init)
{
    if (!init->service.queue) {
        return init->service.shared || init->service.move
                   ? cli_usage(cli, "--shared and --move need --service QUEUE")
                   : EX_OK;
    }
    if (cli->source.queue || cli->source.file || cli->source.url || init->user ||
        init->password_file || init->json) {
        return cli_usage(cli, "--service QUEUE can be combined with --shared and --move only");
    }
    return EX_OK;
}

static int read_options(struct cli *cli, int argc, char **argv, struct init *init)
{
    /* the common --password-file is for --redis; this one replaces it */
    const struct cli_option options[] = {{"--password-file", .text = &init->password_file},
                                         {"--user", .text = &init->user},
                                         {"--json", .flag = &init->json},
                                         {"--service", .text = &init->service.queue},
                                         {"--shared", .flag = &init->service.shared},
                                         {"--move", .flag = &init->service.move},
                                         {0}};
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);

    if (status == EX_OK && init->user && !init->password_file) {
        return cli_usage(cli, "--user needs --password-file");
    }
    return status == EX_OK ? check_options(cli, init) : status;
}

/* Puts user and password of the options into the configuration. */
static int set_login(struct cli *cli, const struct init *init)
{
    struct config_redis *redis = &cli->config->redis;
    struct buffer why = BUFFER_INIT;
    char *password;

    if (init->user) {
        free(redis->user);
        redis->user = strdup(init->user);
        if (!redis->user) {
            return cli_no_memory();
        }
    }
    if (!init->password_file) {
        return EX_OK;
    }
    password = secret_read_file(init->password_file, true, &why);
    if (!password) {
        cli_error("cannot read the password: %.*s", (int)why.size, why.size > 0 ? why.data : "");
        buffer_free(&why);
        return EX_CONFIG;
    }
    buffer_free(&why);
    if (redis->password) {
        explicit_bzero(redis->password, strlen(redis->password));
        free(redis->password);
    }
    redis->password = password;
    return EX_OK;
}

/* Loads the library if it is missing or older; then *loaded becomes true. */
static int load_library(struct cli *cli, int64_t *version, bool *loaded)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    struct command command = {0};
    struct redisReply *reply;
    int64_t protocol;
    char why[256] = "";
    int status;

    cli->config->queue.load_library = CONFIG_LIBRARY_AUTO;
    status = cli_connect(cli);
    if (status != EX_OK) {
        return status;
    }
    queue_version(&command);
    reply = client_call(cli->client, &command, &error, why, sizeof why);
    command_free(&command);
    if (!reply) {
        return cli_call_failed(cli, "cannot read the version of the function library", error, why);
    }
    status = queue_version_read(reply, &protocol, version) == 0 ? EX_OK : EX_PROTOCOL;
    freeReplyObject(reply);
    if (status != EX_OK) {
        cli_error("the function leat_version is not leat's");
    } else if (*version < library_version()) {
        cli_error("cannot replace version %lld of the function library by version %lld: the ACL of "
                  "user %s lacks FUNCTION LOAD",
                  (long long)*version, (long long)library_version(),
                  cli->config->redis.user ? cli->config->redis.user : "default");
        return EX_NOPERM;
    }
    *loaded = cli->library.done;
    return status;
}

static int make_group(struct cli *cli, bool *made)
{
    struct command command = {0};
    struct redisReply *reply;
    int status;

    queue_init_group(&command, &cli->queue);
    reply = cli_call(cli, &command, "cannot create the consumer group", 2, &status);
    if (!reply) {
        return status;
    }
    *made = fields_integer(reply->element[1], 0) == 1;
    freeReplyObject(reply);
    return EX_OK;
}

static int print_done(const struct cli *cli, int64_t version, bool loaded, bool made, bool json)
{
    if (json) {
        return output_json(json_pack("{s:I, s:b, s:b}", "version", (json_int_t)version, "loaded",
                                     (int)loaded, "group_made", (int)made),
                           true);
    }
    /* cli_flush reports failures */
    (void)printf("function library, version %lld: %s\n", (long long)version,
                 loaded ? "loaded" : "already loaded");
    (void)printf("group %s of %s: %s\n", cli->config->queue.group, cli->config->queue.stream,
                 made ? "created" : "already exists");
    return EX_OK;
}

static int run_init(struct cli *cli, int argc, char **argv)
{
    const struct audit act = {.event = "operator-init"};
    struct init init = {0};
    bool loaded = false, made = false;
    int64_t version = 0;
    int status = read_options(cli, argc, argv, &init);

    if (status == EX_OK && init.service.queue) {
        return service_make(&init.service);
    }
    status = status == EX_OK ? cli_load(cli) : status;
    status = status == EX_OK ? set_login(cli, &init) : status;
    status = status == EX_OK ? load_library(cli, &version, &loaded) : status;
    status = status == EX_OK ? make_group(cli, &made) : status;
    if (status != EX_OK) {
        return status;
    }
    if (loaded || made) {
        audit_record(cli, &act, "made the queue ready: %s%s%s", loaded ? "library loaded" : "",
                     loaded && made ? ", " : "", made ? "group made" : "");
    }
    return print_done(cli, version, loaded, made, init.json);
}

const struct subcommand init_command = {
    "init", "Load the function library; make a service for a queue", init_help, run_init};
