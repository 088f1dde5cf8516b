/*
 * leat cancel: cancels tasks, whether they wait or run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/audit.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "cli/lib/text.h"
#include "cli/show/expand_id.h"
#include "cli/show/show.h"
#include "queue/calls.h"
#include "redis/error.h"
#include "view/reply_fields.h"

#define WHY_SIZE 512

static const char help[] =
    "Usage: leat cancel [OPTION]... ID...\n"
    "Cancel tasks. ID is a task's id, or its label (--id) while it is in the queue;\n"
    "'-' reads ids from stdin, one per line.\n"
    "\n"
    "A waiting task is removed at once. A running task gets SIGTERM, and SIGKILL\n"
    "after [task] kill_grace; it is not retried. Its worker reads the request with\n"
    "its next heartbeat, within a third of the lease.\n"
    "\n"
    "Options:\n"
    "  --now       notify the workers at once\n"
    "  --json      print one JSON object per line: id, state, worker\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails cancel 1769860800000-0\n"
    "  leat -q thumbnails cancel --now order-17\n"
    "  leat -q thumbnails list --state delayed --limit 0 --json |\n"
    "      jq -r '.[].tid' | leat -q thumbnails cancel -\n"
    "\n"
    "Exit codes:\n"
    "  0   every task was cancelled, or its worker was asked to stop it\n"
    "  64  wrong usage\n"
    "  66  a task was not found\n" CLI_EXITS;

enum state { UNKNOWN, LATER, CANCELLED, ASKED, NOT_FOUND, FAILED };

/* A task to cancel. */
struct target {
    size_t id; /* as typed: its offset in ids */
    enum state state;
    char tid[48], token[48]; /* "": not located yet; no token: not in the requeue stream */
    char worker[160];        /* ASKED: the worker that runs it */
};

struct cancel {
    struct cli *cli;
    bool now, json;
    struct buffer ids; /* each ends with a NUL */
    struct target targets[QUEUE_CANCEL_MAX];
    size_t count;
    int status; /* exit status of the last failure */
    struct audit done;
};

static const char *id_of(const struct cancel *cancel, const struct target *target)
{
    return cancel->ids.data + target->id;
}

/* The name of the task for Redis. */
static const char *name_of(const struct cancel *cancel, const struct target *target)
{
    return *target->tid ? target->tid : id_of(cancel, target);
}

/* ---- calls */

static void take_answer(struct cancel *cancel, struct target *target, struct bytes answer)
{
    static const char asked[] = "asked ";
    char what[256], why[WHY_SIZE];

    bytes_copy(answer, why, sizeof why);
    if (bytes_equal(answer, "gone")) {
        target->state = UNKNOWN;
    } else if (bytes_equal(answer, "later")) {
        target->state = LATER;
    } else if (bytes_equal(answer, "cancelled")) {
        target->state = CANCELLED;
    } else if (strncmp(why, asked, sizeof asked - 1) == 0) {
        target->state = ASKED;
        bytes_copy((struct bytes){answer.data + sizeof asked - 1, answer.size - sizeof asked + 1},
                   target->worker, sizeof target->worker);
    } else {
        const char *text;
        size_t size = redis_error_text(answer.data, answer.size, &text);
        target->state = FAILED;
        bytes_copy((struct bytes){text, size}, why, sizeof why);
        (void)snprintf(what, sizeof what, "cannot cancel %s", id_of(cancel, target));
        cancel->status =
            cli_call_failed(cancel->cli, what, redis_error_classify(answer.data, answer.size), why);
    }
}

/* Cancels all targets in that state, in one call. *more: some of them have to be sent again.
 * Returns false after a failure. */
static bool ask_once(struct cancel *cancel, enum state state, bool *more)
{
    struct target *asked[QUEUE_CANCEL_MAX];
    struct command command = {0};
    struct redisReply *reply;
    size_t count = 0;
    int status;

    queue_cancel_begin(&command, &cancel->cli->queue, cancel->now);
    for (size_t i = 0; i < cancel->count; i++) {
        struct target *target = &cancel->targets[i];
        if (target->state != state) {
            continue;
        }
        queue_cancel_add(&command, name_of(cancel, target), target->token);
        asked[count++] = target;
    }
    if (count == 0) {
        command_free(&command);
        return true;
    }
    reply = cli_call(cancel->cli, &command, "cannot cancel", count + 1, &status);
    if (!reply) {
        cancel->status = status;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        take_answer(cancel, asked[i], fields_value(reply->element[i + 1]));
        *more = *more || asked[i]->state == LATER;
    }
    freeReplyObject(reply);
    return true;
}

/* Cancels all targets that are not settled. One call reads only a few very large tasks. Returns
 * false after a failure. */
static bool ask(struct cancel *cancel)
{
    bool more = false, fine = ask_once(cancel, UNKNOWN, &more);

    while (fine && more) {
        more = false;
        fine = ask_once(cancel, LATER, &more);
    }
    return fine;
}

/* Counts the tasks that were cancelled, for the audit record. */
static void count_cancelled(struct cancel *cancel)
{
    for (size_t i = 0; i < cancel->count; i++) {
        const struct target *target = &cancel->targets[i];
        if (target->state == CANCELLED || target->state == ASKED) {
            audit_add(&cancel->done, *target->tid ? target->tid : id_of(cancel, target));
        }
    }
}

/* Locates the targets that the call did not find: they do not exist, or an older library has put
 * them into the requeue stream, and they are not indexed yet. Returns false after a failure. */
static bool locate(struct cancel *cancel)
{
    for (size_t i = 0; i < cancel->count; i++) {
        struct target *target = &cancel->targets[i];
        struct redisReply *found;
        int status = EX_OK;
        if (target->state != UNKNOWN) {
            continue;
        }
        found = show_locate_live(cancel->cli, name_of(cancel, target), &status);
        if (status != EX_OK) {
            cancel->status = status;
            return false;
        }
        if (!found) {
            continue;
        }
        bytes_copy(fields_bytes(found->element[2], "tid"), target->tid, sizeof target->tid);
        bytes_copy(fields_bytes(found->element[2], "token"), target->token, sizeof target->token);
        freeReplyObject(found);
    }
    return true;
}

/* ---- output */

static const char *const state_names[] = {
    [UNKNOWN] = "failed", [LATER] = "failed",        [CANCELLED] = "cancelled",
    [ASKED] = "asked",    [NOT_FOUND] = "not_found", [FAILED] = "failed"};

static int print_json(const struct cancel *cancel, const struct target *target)
{
    json_t *object = json_pack("{s:s}", "state", state_names[target->state]);

    output_put_bytes(&object, "id", bytes_of(id_of(cancel, target)));
    if (target->state == ASKED) {
        output_put(&object, "worker", json_string(target->worker));
    }
    return output_json(object, false);
}

static int print_line(const struct cancel *cancel, const struct target *target)
{
    const char *id = id_of(cancel, target);
    struct buffer line = BUFFER_INIT;
    int status;

    /* a failed append marks the buffer */
    (void)text_append(&line, id, strlen(id));
    if (target->state == ASKED) {
        (void)buffer_printf(&line, ": asked%s, it runs on ", cancel->now ? " at once" : "");
        (void)text_append(&line, target->worker, strlen(target->worker));
        (void)buffer_append_text(&line, "\n");
    } else {
        (void)buffer_printf(&line, ": %s\n",
                            target->state == NOT_FOUND ? "not found" : state_names[target->state]);
    }
    status = output_write(&line);
    buffer_free(&line);
    return status;
}

static int print_all(struct cancel *cancel)
{
    int status = EX_OK;

    for (size_t i = 0; i < cancel->count && status == EX_OK; i++) {
        const struct target *target = &cancel->targets[i];
        status = cancel->json ? print_json(cancel, target) : print_line(cancel, target);
        if (target->state == NOT_FOUND && cancel->status == EX_OK) {
            cancel->status = EX_NOINPUT;
        }
    }
    return status;
}

/* ---- the command */

/* Cancels the targets that were collected, and prints the results. Returns false after a failure.
 */
static bool settle(struct cancel *cancel)
{
    bool fine = ask(cancel) && locate(cancel) && ask(cancel);
    int status;

    /* a task that moved in between is indexed, so the last call would have found it */
    for (size_t i = 0; i < cancel->count && fine; i++) {
        if (cancel->targets[i].state == UNKNOWN) {
            cancel->targets[i].state = NOT_FOUND;
        }
    }
    count_cancelled(cancel);
    status = print_all(cancel);
    cancel->count = 0;
    buffer_clear(&cancel->ids);
    if (status != EX_OK) {
        cancel->status = status;
    }
    return fine && status == EX_OK && !ferror(stdout);
}

static bool add(struct cancel *cancel, const char *id)
{
    size_t start = cancel->ids.size;
    struct expanded_id expanded;
    int status = expand_id(cancel->cli, id, &expanded);

    if (status == EX_OK && buffer_append(&cancel->ids, expanded.id, strlen(expanded.id) + 1) != 0) {
        status = cli_no_memory();
    }
    if (status != EX_OK) {
        cancel->status = status;
        return status == EX_USAGE; /* the other ids do not depend on this one */
    }
    cancel->targets[cancel->count++] = (struct target){.id = start};
    return cancel->count < QUEUE_CANCEL_MAX || settle(cancel);
}

static bool add_lines(struct cancel *cancel, FILE *file)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    bool fine = true;

    while (fine && (size = getline(&line, &capacity, file)) >= 0) {
        int status = cli_check_line(cancel->cli, line, (size_t)size);
        line[strcspn(line, "\n")] = '\0';
        if (status != EX_OK) {
            cancel->status = status;
        } else if (*line) {
            fine = add(cancel, line);
        }
    }
    if (fine && ferror(file)) {
        cli_error("cannot read ids from stdin: %s", strerror(errno));
        cancel->status = EX_NOINPUT;
        fine = false;
    }
    free(line);
    return fine;
}

static int cancel_all(struct cancel *cancel, char *const *ids)
{
    bool fine = true;
    int status = cli_connect(cancel->cli);

    if (status != EX_OK) {
        return status;
    }
    for (; *ids && fine; ids++) {
        fine = strcmp(*ids, "-") == 0 ? add_lines(cancel, stdin) : add(cancel, *ids);
    }
    if (fine || cancel->count > 0) {
        (void)settle(cancel); /* it sets cancel->status */
    }
    buffer_free(&cancel->ids);
    if (cancel->done.count > 0) {
        audit_record(cancel->cli, &cancel->done, "cancelled %zu task%s", cancel->done.count,
                     cancel->done.count == 1 ? "" : "s");
    }
    return cancel->status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct cancel cancel = {.done.event = "operator-cancel", .cli = cli};
    const struct cli_option options[] = {
        {"--now", .flag = &cancel.now}, {"--json", .flag = &cancel.json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    if (optind == argc) {
        return cli_usage(cli, "missing operand: give task ids, or '-'");
    }
    return cancel_all(&cancel, argv + optind);
}

const struct subcommand cancel_command = {"cancel", "Cancel tasks", help, run};
