/*
 * leat enqueue --file: many tasks in batches, several on their way at a time. What becomes of each
 * line is always known or said to be unknown.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/enqueue/enqueue.h"
#include "cli/enqueue/input.h"
#include "cli/enqueue/replica_wait.h"
#include "cli/lib/interrupt.h"
#include "cli/lib/progress.h"
#include "cli/lib/reply_fields.h"
#include "redis/error.h"

#define BATCH_TASKS 500
#define BATCH_BYTES ((size_t)1024 * 1024)
#define FLYING_MAX 8
#define WHY_SIZE 512

struct batch {
    uint64_t lines[BATCH_TASKS];
    size_t tasks;
};

struct bulk {
    struct cli *cli;
    const struct enqueue_options *options;
    struct input *input;
    struct progress progress;
    struct command command; /* of the batch that is being filled */
    struct batch filling;
    struct batch flying[FLYING_MAX]; /* a ring: the oldest stands at `oldest` */
    size_t oldest, flying_count;
    uint64_t added, existed, uncertain;
    uint64_t asked;        /* how many of those there replicas were asked for */
    bool replicated;       /* and had all of them */
    uint64_t stopped_line; /* the first line that was not sent; 0: none */
    int status;            /* of the first failure */
};

static const char *due_of(const struct bulk *bulk)
{
    return bulk->options->due[0] ? bulk->options->due : "0";
}

static void fail(struct bulk *bulk, int status)
{
    if (bulk->status == EX_OK) {
        bulk->status = status;
    }
}

/* ---- answers */

static void print_batch(struct bulk *bulk, const struct redisReply *reply, size_t tasks)
{
    static const struct bytes no_label = {"", 0};

    for (size_t i = 0; i < tasks; i++) {
        bool is_new = bytes_equal(fields_value(reply->element[1 + i * 2]), "new");
        if (is_new) {
            bulk->added++;
        } else {
            bulk->existed++;
        }
        enqueue_print(bulk->options, is_new, fields_value(reply->element[2 + i * 2]), no_label);
    }
    if (cli_flush() != EX_OK) {
        fail(bulk, EX_IOERR);
    }
}

/* The queue counts tasks of a call from 1; who reads it knows lines. Others are as they were. */
static const char *name_line(const struct bulk *bulk, const struct batch *batch, const char *why,
                             char *text, size_t size)
{
    static const char prefix[] = "REFUSED task ";
    char *rest = NULL;
    unsigned long task = 0;

    if (strncmp(why, prefix, sizeof prefix - 1) == 0) {
        task = strtoul(why + sizeof prefix - 1, &rest, 10);
    }
    if (task == 0 || task > batch->tasks || strncmp(rest, ": ", 2) != 0) {
        return why;
    }
    (void)snprintf(text, size, "%s:%llu%s", bulk->options->file,
                   (unsigned long long)batch->lines[task - 1], rest); /* may be cut */
    return text;
}

static void report_batch(struct bulk *bulk, const struct batch *batch, enum redis_error error,
                         const char *why)
{
    char what[160], text[WHY_SIZE];
    bool unknown = error == REDIS_ERROR_LOST;

    if (unknown) {
        bulk->uncertain += batch->tasks;
    }
    /* two numbers and a few words fit */
    (void)snprintf(what, sizeof what, "lines %llu to %llu %s", (unsigned long long)batch->lines[0],
                   (unsigned long long)batch->lines[batch->tasks - 1],
                   unknown ? "may be in the queue or not" : "were not enqueued");
    progress_end(&bulk->progress);
    fail(bulk, cli_call_failed(what, error, name_line(bulk, batch, why, text, sizeof text)));
}

static void receive_one(struct bulk *bulk)
{
    struct batch batch = bulk->flying[bulk->oldest];
    enum redis_error error = REDIS_ERROR_OTHER;
    char why[WHY_SIZE] = "";
    struct redisReply *reply = client_receive(bulk->cli->client, &error, why, sizeof why);
    int status;

    bulk->oldest = (bulk->oldest + 1) % FLYING_MAX;
    bulk->flying_count--;
    if (!reply) {
        report_batch(bulk, &batch, error, why);
        return;
    }
    status = cli_check_reply(reply, 1 + 2 * batch.tasks);
    if (status == EX_OK) {
        print_batch(bulk, reply, batch.tasks);
    } else {
        fail(bulk, status);
    }
    freeReplyObject(reply);
    progress_draw(&bulk->progress, bulk->added + bulk->existed, input_bytes(bulk->input),
                  input_size(bulk->input));
}

/* ---- batches */

static void begin_batch(struct bulk *bulk)
{
    bulk->filling.tasks = 0;
    queue_enqueue_begin(&bulk->command, &bulk->cli->queue);
}

/* Sends what is filled, after making room in flight; a failure met on the way leaves it unsent. */
static void send_batch(struct bulk *bulk)
{
    if (bulk->filling.tasks == 0) {
        return;
    }
    if (bulk->flying_count == FLYING_MAX) {
        receive_one(bulk);
    }
    if (bulk->status != EX_OK) {
        bulk->stopped_line = bulk->filling.lines[0];
        return;
    }
    if (client_append(bulk->cli->client, &bulk->command) != 0) {
        fail(bulk, cli_no_memory());
        bulk->stopped_line = bulk->filling.lines[0];
        return;
    }
    bulk->flying[(bulk->oldest + bulk->flying_count++) % FLYING_MAX] = bulk->filling;
    begin_batch(bulk);
}

/* One question covers all that was answered before it. */
static void receive_all(struct bulk *bulk)
{
    uint64_t there;

    while (bulk->flying_count > 0) {
        receive_one(bulk);
    }
    there = bulk->added + bulk->existed;
    if (there > bulk->asked && bulk->uncertain == 0) {
        bulk->replicated =
            cli_wait_replicas(bulk->cli, there - bulk->asked) == EX_OK && bulk->replicated;
    }
    bulk->asked = there;
}

/* All that was read is in the queue, or known not to be. */
static void settle(struct bulk *bulk)
{
    send_batch(bulk);
    receive_all(bulk);
}

static void add_task(struct bulk *bulk, const struct draft *draft)
{
    bulk->filling.lines[bulk->filling.tasks++] = input_line(bulk->input);
    draft_append(draft, due_of(bulk), &bulk->command);
    if (bulk->filling.tasks == BATCH_TASKS || bulk->command.wire.size >= BATCH_BYTES) {
        send_batch(bulk);
    }
}

/* ---- the run */

/* The next task into the draft behind the common fields. Returns 1, 0 at the end, −1 for a line
 * that is wrong: what stands before it is still sent. */
static int next_task(struct bulk *bulk, struct draft *draft)
{
    char why[WHY_SIZE];
    int got;

    /* what a slow writer has written does not wait for what it is going to write */
    if (input_would_block(bulk->input)) {
        settle(bulk);
    }
    if (bulk->status != EX_OK) {
        return 0;
    }
    draft->count = 0;
    got = interrupt_came() ? 0 : input_next(bulk->input, draft, why, sizeof why);
    if (got == 0 || (got < 0 && interrupt_came())) {
        return 0;
    }
    for (size_t i = 0; i < bulk->options->common.count && got > 0; i++) {
        if (draft_add(draft, bulk->options->common.fields[i].name,
                      bulk->options->common.fields[i].value) != 0) {
            got = -1;
        }
    }
    if (got > 0 && task_ready(bulk->cli, bulk->options, draft, why, sizeof why)) {
        return 1;
    }
    progress_end(&bulk->progress);
    cli_error("%s:%llu: %s", bulk->options->file, (unsigned long long)input_line(bulk->input), why);
    return -1;
}

static void run_all(struct bulk *bulk)
{
    struct draft draft = {0};
    int got;

    begin_batch(bulk);
    while (bulk->status == EX_OK && (got = next_task(bulk, &draft)) != 0) {
        if (got < 0) {
            send_batch(bulk);
            if (bulk->stopped_line == 0) {
                bulk->stopped_line = input_line(bulk->input);
            }
            fail(bulk, EX_DATAERR);
            break;
        }
        add_task(bulk, &draft);
    }
    if (bulk->status == EX_OK) {
        settle(bulk);
    } else if (bulk->stopped_line == 0 && bulk->filling.tasks > 0) {
        bulk->stopped_line = bulk->filling.lines[0];
    } else if (bulk->stopped_line == 0) {
        bulk->stopped_line = input_line(bulk->input) + 1;
    }
    receive_all(bulk);
    draft_free(&draft);
}

/* Once something went wrong: what is in the queue, and where to go on. */
static void report(const struct bulk *bulk)
{
    char uncertain[64] = "", stopped[96] = "";

    progress_end(&bulk->progress);
    if (bulk->status == EX_OK && !interrupt_came()) {
        if (bulk->progress.shown && !bulk->options->quiet) {
            cli_error("%llu task%s enqueued%s", (unsigned long long)bulk->added,
                      bulk->added == 1 ? "" : "s",
                      bulk->existed > 0 ? ", others were there already" : "");
        }
        return;
    }
    /* the numbers fit */
    if (bulk->uncertain > 0) {
        (void)snprintf(uncertain, sizeof uncertain, ", %llu uncertain",
                       (unsigned long long)bulk->uncertain);
    }
    if (bulk->stopped_line > 0) {
        (void)snprintf(stopped, sizeof stopped, "; nothing from line %llu on was sent",
                       (unsigned long long)bulk->stopped_line);
    } else if (interrupt_came()) {
        (void)snprintf(stopped, sizeof stopped, "; interrupted after line %llu",
                       (unsigned long long)input_line(bulk->input));
    }
    cli_error("%llu task%s enqueued, %llu there already%s%s", (unsigned long long)bulk->added,
              bulk->added == 1 ? "" : "s", (unsigned long long)bulk->existed, uncertain, stopped);
}

int enqueue_bulk(struct cli *cli, const struct enqueue_options *options)
{
    bool command_known = cli->config->task.command || draft_has(&options->common, "command");
    struct bulk bulk = {.cli = cli, .options = options, .replicated = true};
    int status = cli_connect(cli);

    if (status != EX_OK) {
        return status;
    }
    bulk.input = input_open(options->file, options->input, command_known ? "payload" : "command");
    if (!bulk.input) {
        cli_error("cannot read %s: %s", options->file, strerror(errno));
        return EX_NOINPUT;
    }

    interrupt_catch();
    progress_begin(&bulk.progress);
    run_all(&bulk);
    report(&bulk);
    input_close(bulk.input);
    command_free(&bulk.command);
    if (bulk.status == EX_OK && interrupt_came()) {
        return INTERRUPT_STATUS;
    }
    return bulk.status == EX_OK && !bulk.replicated ? REPLICAS_TOO_FEW : bulk.status;
}
