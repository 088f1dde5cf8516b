/*
 * leat destroy: deletes a queue with all of its keys.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "cli/lib/audit.h"
#include "cli/lib/cli.h"
#include "cli/lib/queues.h"
#include "cli/status/status.h"
#include "queue/removal.h"
#include "view/reply_fields.h"

static const char help[] =
    "Usage: leat destroy [OPTION]... QUEUE\n"
    "Delete a queue from Redis: its tasks, dead letters, settings and results. Files\n"
    "on hosts, such as /etc/leat/QUEUE.ini, stay.\n"
    "\n"
    "leat asks before, and refuses while workers of the queue are alive. What a\n"
    "worker or a producer adds after the tasks are gone is a new queue.\n"
    "\n"
    "Options:\n"
    "  --yes       do not ask\n"
    "  --force     delete it although workers are alive; they kill their tasks\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails export >thumbnails.jsonl && leat destroy thumbnails\n"
    "\n"
    "Exit codes:\n"
    "  0   the queue is deleted\n"
    "  1   nothing was deleted: there is no such queue, or the answer was no\n"
    "  64  wrong usage\n"
    "  65  workers are alive\n" CLI_EXITS;

#define NOTHING_DONE 1
#define WHY_SIZE 512

struct destroy {
    struct cli *cli;
    bool yes, force, may_not_scan;
    int64_t keys; /* that were deleted */
};

/* Sends and frees the command. Returns its reply for freeReplyObject, or NULL with *status 0 if the
 * user may not do it, or an exit status after printing the error. */
static struct redisReply *call(struct destroy *destroy, struct command *command, bool may_fail,
                               int *status)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    char why[WHY_SIZE] = "";
    struct redisReply *reply = client_call(destroy->cli->client, command, &error, why, sizeof why);

    command_free(command);
    *status = EX_OK;
    if (!reply && !(may_fail && error == REDIS_ERROR_DENIED)) {
        *status = cli_call_failed(destroy->cli, "cannot destroy the queue", error, why);
    }
    return reply;
}

static int unlink_keys(struct destroy *destroy, struct command *command)
{
    int status;
    struct redisReply *reply = call(destroy, command, false, &status);

    destroy->keys += fields_integer(reply, 0);
    freeReplyObject(reply);
    return status;
}

/* Deletes those of the keys that are results or live output of the queue. */
static int unlink_kept(struct destroy *destroy, const struct redisReply *keys)
{
    struct command command = {0};
    size_t count = 0;

    removal_unlink_begin(&command);
    for (size_t i = 0; i < keys->elements; i++) {
        struct bytes key = fields_value(keys->element[i]);
        if (removal_is_kept(&destroy->cli->queue, key)) {
            command_add_bytes(&command, key);
            count++;
        }
    }
    if (count > 0) {
        return unlink_keys(destroy, &command);
    }
    command_free(&command);
    return EX_OK;
}

/* Their names are not known. They expire, so that a user without the right to SCAN leaves them. */
static int destroy_kept(struct destroy *destroy)
{
    char cursor[32] = "0";
    int status = EX_OK;

    do {
        struct command command = {0};
        struct redisReply *reply;
        removal_scan(&command, &destroy->cli->queue, cursor);
        reply = call(destroy, &command, true, &status);
        if (!reply) {
            destroy->may_not_scan = status == EX_OK;
            return status;
        }
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
            freeReplyObject(reply);
            return cli_unexpected_reply();
        }
        bytes_copy(fields_value(reply->element[0]), cursor, sizeof cursor);
        status = unlink_kept(destroy, reply->element[1]);
        freeReplyObject(reply);
    } while (status == EX_OK && strcmp(cursor, "0") != 0);
    return status;
}

/* The tasks go last: once they are gone, whatever is found is of a new queue. */
static int destroy_keys(struct destroy *destroy)
{
    struct command command = {0};
    int status = destroy_kept(destroy);

    if (status != EX_OK) {
        return status;
    }
    removal_unlink(&command, &destroy->cli->queue);
    status = unlink_keys(destroy, &command);
    if (status == EX_OK && destroy->may_not_scan) {
        cli_error("this user may not SCAN: results and live output stay until they expire");
    }
    return status;
}

/* ---- questions before */

static int refuse_alive(const struct status *status, const char *name)
{
    for (size_t i = 0; i < status->worker_count; i++) {
        if (status->workers[i].live) {
            cli_error(
                "cannot destroy %s: %zu worker%s alive, such as %s; stop them, or add --force",
                name, status->live_count, status->live_count == 1 ? " is" : "s are",
                status->workers[i].consumer);
            break;
        }
    }
    return EX_DATAERR;
}

static int confirm(const struct destroy *destroy, const struct status *status)
{
    const char *name = destroy->cli->config->queue.name;
    long long waiting = (long long)status_figure(status, "ready") +
                        (long long)status_figure(status, "delayed") +
                        (long long)status_figure(status, "retrying");
    long long running = (long long)status_figure(status, "running");
    long long dead = (long long)status_figure(status, "dead");
    char answer[16];

    if (destroy->yes) {
        return EX_OK;
    }
    if (isatty(STDIN_FILENO) != 1) {
        return cli_usage(destroy->cli,
                         "this would delete %lld waiting and %lld running task%s and %lld dead "
                         "letter%s for good; to confirm, add --yes",
                         waiting, running, running == 1 ? "" : "s", dead, dead == 1 ? "" : "s");
    }
    (void)fprintf(stderr,
                  "Destroy the queue %s with %lld waiting and %lld running task%s and %lld dead "
                  "letter%s for good? [y/N] ",
                  name, waiting, running, running == 1 ? "" : "s", dead, dead == 1 ? "" : "s");
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y')) {
        return EX_OK;
    }
    cli_error("nothing was deleted");
    return NOTHING_DONE;
}

/* Returns 0 if the queue may be destroyed. */
static int check(const struct destroy *destroy)
{
    int status = EX_OK;
    struct redisReply *reply = status_call(destroy->cli, &status);
    struct status queue;

    if (!reply) {
        return status;
    }
    if (status_read(reply, destroy->cli->config->queue.lease_ms, &queue) != 0) {
        freeReplyObject(reply);
        return cli_no_memory();
    }
    if (queue.live_count > 0 && !destroy->force) {
        status = refuse_alive(&queue, destroy->cli->config->queue.name);
    } else {
        status = confirm(destroy, &queue);
    }
    status_free(&queue);
    freeReplyObject(reply);
    return status;
}

static int destroy_queue(struct destroy *destroy)
{
    struct cli *cli = destroy->cli;
    struct audit done = {.event = "operator-destroy"};
    const char *name = cli->config->queue.name;
    int status = check(destroy);

    status = status == EX_OK ? destroy_keys(destroy) : status;
    if (destroy->keys > 0) {
        audit_record(cli, &done, "destroyed the queue%s", status == EX_OK ? "" : " in part");
    }
    if (status == EX_OK && destroy->keys == 0) {
        cli_error("there is no queue %s in this Redis", name);
        return NOTHING_DONE;
    }
    if (status == EX_OK) {
        /* cli_flush reports failures */
        (void)printf("destroyed the queue %s: %lld keys\n", name, (long long)destroy->keys);
    } else if (destroy->keys > 0) {
        cli_error("%lld keys were deleted; run the command again", (long long)destroy->keys);
    }
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct destroy destroy = {.cli = cli};
    const struct cli_option options[] = {
        {"--yes", .flag = &destroy.yes}, {"--force", .flag = &destroy.force}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    if (optind + 1 != argc) {
        return cli_usage(cli, optind < argc ? "give only one queue"
                                            : "missing operand: give the name of one queue");
    }
    if (!cli->source.queue && (queues_is_open(cli) || !queues_reads_file(cli))) {
        cli->source.queue = argv[optind];
    }
    status = cli_connect(cli);
    if (status == EX_OK && strcmp(cli->config->queue.name, argv[optind]) != 0) {
        status = cli_usage(cli, "this configuration is of the queue %s, not of %s",
                           cli->config->queue.name, argv[optind]);
    }
    return status == EX_OK ? destroy_queue(&destroy) : status;
}

const struct subcommand destroy_command = {"destroy", "Delete a queue with all its tasks", help,
                                           run};
