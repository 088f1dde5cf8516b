/*
 * leat enqueue --file: adds many tasks in batches, several of them in flight. Each line is reported
 * as added, not added, or uncertain.
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
#include "queue/calls.h"
#include "redis/error.h"
#include "view/reply_fields.h"

#define BATCH_TASKS 500
#define BATCH_BYTES ((size_t)1024 * 1024)
#define FLYING_MAX 8 /* batches in flight */
#define WHY_SIZE 512

struct batch {
    uint64_t lines[BATCH_TASKS];
    size_t tasks;
    struct buffer labels; /* with --json: those of all tasks, each after its size */
};

struct bulk {
    struct cli *cli;
    const struct enqueue_options *options;
    struct input *input;
    struct progress progress;
    struct command command; /* the call for the batch that is being filled */
    struct batch filling;
    struct batch flying[FLYING_MAX]; /* in flight: a ring that begins at `oldest` */
    size_t oldest, flying_count;
    uint64_t added, existed, uncertain;
    uint64_t asked;        /* tasks for which replicas were waited for */
    bool replicated;       /* enough replicas had all of these */
    bool muted;            /* the ids cannot be written */
    uint64_t stopped_line; /* the first line that was not sent; 0: none */
    int status;            /* exit status of the first failure */
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

/* Notes the label of the next task of the batch. A failure marks the buffer. */
static void note_label(struct batch *batch, struct bytes label)
{
    (void)buffer_append(&batch->labels, &label.size, sizeof label.size);
    (void)buffer_append(&batch->labels, label.data, label.size);
}

/* The label that begins at *at; moves *at to the next one. */
static struct bytes next_label(const struct buffer *labels, size_t *at)
{
    struct bytes label = {"", 0};

    if (*at < labels->size) {
        memcpy(&label.size, labels->data + *at, sizeof label.size);
        label.data = labels->data + *at + sizeof label.size;
        *at += sizeof label.size + label.size;
    }
    return label;
}

static void print_batch(struct bulk *bulk, const struct redisReply *reply,
                        const struct batch *batch)
{
    size_t at = 0;

    for (size_t i = 0; i < batch->tasks; i++) {
        bool is_new = bytes_equal(fields_value(reply->element[1 + i * 2]), "new");
        if (is_new) {
            bulk->added++;
        } else {
            bulk->existed++;
        }
        enqueue_print(bulk->options, is_new, fields_value(reply->element[2 + i * 2]),
                      next_label(&batch->labels, &at));
    }
    if (!bulk->muted && cli_flush() != EX_OK) {
        bulk->muted = true;
        fail(bulk, EX_IOERR);
    }
}

/* Replaces the number of the task in a refusal by the line of the file. Other messages stay. */
static const char *name_line(const struct bulk *bulk, const struct batch *batch, const char *why,
                             char *text, size_t size)
{
    static const char prefix[] = "task ";
    char *rest = NULL;
    unsigned long task = 0;

    if (strncmp(why, prefix, sizeof prefix - 1) == 0) {
        task = strtoul(why + sizeof prefix - 1, &rest, 10);
    }
    if (task == 0 || task > batch->tasks || strncmp(rest, ": ", 2) != 0) {
        return why;
    }
    (void)snprintf(text, size, "%s:%llu%s", bulk->options->file,
                   (unsigned long long)batch->lines[task - 1], rest);
    return text;
}

static void report_batch(struct bulk *bulk, const struct batch *batch, enum redis_error error,
                         const char *why)
{
    char what[160], lines[64], text[WHY_SIZE];
    unsigned long long first = batch->lines[0], last = batch->lines[batch->tasks - 1];
    bool unknown = error == REDIS_ERROR_LOST;

    if (unknown) {
        bulk->uncertain += batch->tasks;
    }
    /* numbers and a few words fit */
    (void)snprintf(lines, sizeof lines, first == last ? "line %llu" : "lines %llu to %llu", first,
                   last);
    (void)snprintf(what, sizeof what, "%s %s", lines,
                   unknown         ? "may or may not be in the queue"
                   : first == last ? "was not enqueued"
                                   : "were not enqueued");
    progress_end(&bulk->progress);
    fail(bulk,
         cli_call_failed(bulk->cli, what, error, name_line(bulk, batch, why, text, sizeof text)));
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
        buffer_free(&batch.labels);
        return;
    }
    status = cli_check_reply(reply, 1 + 2 * batch.tasks);
    if (status == EX_OK) {
        print_batch(bulk, reply, &batch);
    } else {
        fail(bulk, status);
    }
    freeReplyObject(reply);
    buffer_free(&batch.labels);
    progress_draw(&bulk->progress, bulk->added + bulk->existed, input_bytes(bulk->input),
                  input_size(bulk->input));
}

/* ---- batches */

static void begin_batch(struct bulk *bulk)
{
    bulk->filling.tasks = 0;
    bulk->filling.labels = BUFFER_INIT;
    queue_enqueue_begin(&bulk->command, &bulk->cli->queue);
}

/* Sends the filled batch. If FLYING_MAX batches are in flight, it first waits for the oldest; if
 * that one failed, the new one is not sent. */
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
    if (bulk->filling.labels.failed || client_append(bulk->cli->client, &bulk->command) != 0) {
        fail(bulk, cli_no_memory());
        bulk->stopped_line = bulk->filling.lines[0];
        return;
    }
    bulk->flying[(bulk->oldest + bulk->flying_count++) % FLYING_MAX] = bulk->filling;
    begin_batch(bulk);
}

/* Receives all replies, and waits once for the replicas of all tasks. */
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

/* Sends and receives everything that was read so far. */
static void settle(struct bulk *bulk)
{
    send_batch(bulk);
    receive_all(bulk);
}

static void add_task(struct bulk *bulk, const struct draft *draft)
{
    bulk->filling.lines[bulk->filling.tasks++] = input_line(bulk->input);
    draft_append(draft, due_of(bulk), &bulk->command);
    if (bulk->options->json) {
        note_label(&bulk->filling, draft_label(draft));
    }
    if (bulk->filling.tasks == BATCH_TASKS || bulk->command.wire.size >= BATCH_BYTES) {
        send_batch(bulk);
    }
}

/* ---- the run */

/* Reads the next task into the draft and adds the common fields. Returns 1, 0 at the end, or −1
 * after printing what is wrong with the line. */
static int next_task(struct bulk *bulk, struct draft *draft)
{
    char why[WHY_SIZE];
    int got;

    /* tasks of a slow writer do not wait for its next ones */
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

/* After a failure, prints what is in the queue and from which line to continue. */
static void report(const struct bulk *bulk)
{
    char uncertain[64] = "", stopped[96] = "";

    progress_end(&bulk->progress);
    if (bulk->status == EX_OK && !interrupt_came()) {
        if (bulk->progress.shown && !bulk->options->quiet) {
            cli_error("%llu task%s enqueued%s", (unsigned long long)bulk->added,
                      bulk->added == 1 ? "" : "s",
                      bulk->existed > 0 ? "; others were already in the queue" : "");
        }
        return;
    }
    if (bulk->uncertain > 0) {
        (void)snprintf(uncertain, sizeof uncertain, ", %llu uncertain",
                       (unsigned long long)bulk->uncertain);
    }
    if (bulk->stopped_line > 0) {
        (void)snprintf(stopped, sizeof stopped, "; not sent: line %llu and all after it",
                       (unsigned long long)bulk->stopped_line);
    } else if (interrupt_came()) {
        (void)snprintf(stopped, sizeof stopped, "; interrupted after line %llu",
                       (unsigned long long)input_line(bulk->input));
    }
    cli_error("%llu task%s enqueued, %llu already in the queue%s%s",
              (unsigned long long)bulk->added, bulk->added == 1 ? "" : "s",
              (unsigned long long)bulk->existed, uncertain, stopped);
}

int enqueue_bulk(struct cli *cli, const struct enqueue_options *options)
{
    bool command_known = cli->config->task.command || draft_has(&options->common, "command");
    struct bulk bulk = {.cli = cli, .options = options, .replicated = true};
    int status = cli_connect(cli);

    if (status != EX_OK) {
        return status;
    }
    bulk.input = input_open(options->file, options->input,
                            options->line_field ? options->line_field
                            : command_known     ? "payload"
                                                : "command");
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
    buffer_free(&bulk.filling.labels);
    if (bulk.status == EX_OK && interrupt_came()) {
        return INTERRUPT_STATUS;
    }
    return bulk.status == EX_OK && !bulk.replicated ? REPLICAS_TOO_FEW : bulk.status;
}
