/*
 * leat import --export: adds tasks to the queue that leat export has written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <jansson.h>

#include "base/units.h"
#include "cli/enqueue/import.h"
#include "cli/enqueue/replica_wait.h"
#include "cli/lib/audit.h"
#include "cli/lib/output.h"
#include "queue/calls.h"
#include "queue/entry_id.h"
#include "redis/error.h"
#include "view/reply_fields.h"

#define WHY_SIZE 512
#define BATCH_TASKS 100
#define DUE_MOST_MS INT64_C(9000000000000000) /* what number_arg in leat.lua takes */
#define BATCH_BYTES ((size_t)1 << 20)

struct reading {
    struct cli *cli;
    bool running;                /* import tasks that were running, too */
    struct command call;         /* the tasks that were not sent yet */
    uint64_t lines[BATCH_TASKS]; /* and their lines */
    size_t count;
    uint64_t line, added, existing, skipped;
    int status;
    int end; /* exit status if the queue is full or takes no writes, so the import ends */
};

/* ---- one line */

/* Adds the pairs of an array. Returns 0, or -1 if it has another form. */
static int add_pairs(struct command *command, const json_t *pairs)
{
    struct buffer decoded = BUFFER_INIT;
    struct bytes bytes;
    int failed = json_is_array(pairs) ? 0 : -1;

    for (size_t i = 0; i < json_array_size(pairs) && failed == 0; i++) {
        const json_t *pair = json_array_get(pairs, i);
        failed = output_get_bytes(pair, "name", &decoded, &bytes);
        if (failed == 0) {
            command_add_bytes(command, bytes);
            failed = output_get_bytes(pair, "value", &decoded, &bytes);
        }
        if (failed == 0) {
            command_add_bytes(command, bytes);
        }
    }
    buffer_free(&decoded);
    return failed;
}

/* Writes the place of the task for leat_import. Returns false if a dead letter has no id. */
static bool place_of(const json_t *object, const char *state, char *place, size_t size)
{
    const char *dead_id = json_string_value(json_object_get(object, "dead_id"));
    struct entry_id id;

    if (strcmp(state, "dead") == 0) {
        if (!dead_id || !entry_parse(dead_id, &id)) {
            return false;
        }
        (void)snprintf(place, size, "d%llu-%llu", (unsigned long long)id.ms,
                       (unsigned long long)id.number);
        return true;
    }
    (void)snprintf(place, size, "%s", strcmp(state, "following") == 0 ? "f" : "w");
    return true;
}

static int add_task(struct reading *reading, const json_t *object)
{
    const json_t *fields = json_object_get(object, "fields"),
                 *leat = json_object_get(object, "leat"), *due = json_object_get(object, "due_ms");
    const char *state = json_string_value(json_object_get(object, "state"));
    size_t own = json_array_size(fields);
    char place[64];

    if (!state || !place_of(object, state, place, sizeof place) ||
        (due && (!json_is_integer(due) || json_integer_value(due) < 0 ||
                 json_integer_value(due) > DUE_MOST_MS))) {
        return -1;
    }
    if (strcmp(state, "running") == 0 && !reading->running) {
        reading->skipped++;
        return 0;
    }
    command_add_text(&reading->call, place);
    command_add_number(&reading->call, json_integer_value(due));
    command_add_number(&reading->call, (int64_t)(2 * (own + json_array_size(leat) + 1)));
    if (add_pairs(&reading->call, fields) != 0 || add_pairs(&reading->call, leat) != 0) {
        return -1;
    }
    command_add_text(&reading->call, "leat.fields");
    command_add_number(&reading->call, (int64_t)own);
    reading->lines[reading->count++] = reading->line;
    return 0;
}

/* ---- calls */

static void take_answer(struct reading *reading, uint64_t line, struct bytes answer)
{
    enum redis_error error = redis_error_classify(answer.data, answer.size);
    bool ends = error == REDIS_ERROR_FULL || error == REDIS_ERROR_NO_WRITE;
    char what[64], why[WHY_SIZE];
    const char *text;
    size_t size;

    if (bytes_equal(answer, "new")) {
        reading->added++;
    } else if (bytes_equal(answer, "exists")) {
        reading->existing++;
    } else if (!ends || reading->end == EX_OK) {
        size = redis_error_text(answer.data, answer.size, &text);
        bytes_copy((struct bytes){text, size}, why, sizeof why);
        (void)snprintf(what, sizeof what, "cannot import line %llu", (unsigned long long)line);
        reading->status = cli_call_failed(reading->cli, what, error, why);
        reading->end = ends ? reading->status : reading->end;
    }
}

/* Sends the tasks that were read. Returns 0, or an exit status after printing the error. */
static int send_tasks(struct reading *reading)
{
    struct redisReply *reply;
    int status = EX_OK;

    if (reading->count == 0) {
        return EX_OK;
    }
    reply =
        cli_call(reading->cli, &reading->call, "cannot import tasks", reading->count + 1, &status);
    for (size_t i = 0; reply && i < reading->count; i++) {
        take_answer(reading, reading->lines[i], fields_value(reply->element[i + 1]));
    }
    freeReplyObject(reply);
    reading->call = (struct command){0};
    reading->count = 0;
    queue_import_begin(&reading->call, &reading->cli->queue);
    return status == EX_OK ? reading->end : status;
}

static int take_line(struct reading *reading, const char *line, size_t size)
{
    json_t *object = json_loadb(line, size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    size_t arguments = reading->call.arguments, wire_size = reading->call.wire.size;
    int failed, status;

    reading->line++;
    failed = json_is_object(object) ? add_task(reading, object) : -1;
    json_decref(object);
    if (failed != 0) {
        /* send the tasks before it, without the part of this one that was added */
        reading->call.arguments = arguments;
        reading->call.wire.size = wire_size;
        status = send_tasks(reading);
        cli_error("line %llu is not a task as leat export writes it; the import ends there",
                  (unsigned long long)reading->line);
        return status == EX_OK ? EX_DATAERR : status;
    }
    return reading->count == BATCH_TASKS || reading->call.wire.size >= BATCH_BYTES
               ? send_tasks(reading)
               : EX_OK;
}

static int read_lines(struct reading *reading, FILE *file, const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    int status = EX_OK;

    queue_import_begin(&reading->call, &reading->cli->queue);
    while (status == EX_OK && (size = getline(&line, &capacity, file)) >= 0) {
        status = take_line(reading, line, (size_t)size);
    }
    if (status == EX_OK && ferror(file)) {
        cli_error("cannot read %s: %s", path, strerror(errno));
        status = EX_NOINPUT;
    }
    free(line);
    return status == EX_OK ? send_tasks(reading) : status;
}

/* ---- the command */

static int report(const struct reading *reading, bool json)
{
    struct audit done = {.event = "operator-import", .count = reading->added};

    if (reading->added > 0) {
        audit_record(reading->cli, &done, "imported %llu tasks and dead letters",
                     (unsigned long long)reading->added);
    }
    if (json) {
        return output_json(json_pack("{s:I, s:I, s:I}", "imported", (json_int_t)reading->added,
                                     "existing", (json_int_t)reading->existing, "running_left",
                                     (json_int_t)reading->skipped),
                           true);
    }
    /* cli_flush reports failures */
    (void)printf("imported %llu tasks and dead letters, %llu were in the queue already\n",
                 (unsigned long long)reading->added, (unsigned long long)reading->existing);
    if (reading->skipped > 0) {
        bool one = reading->skipped == 1;
        (void)printf("%llu task%s that %s running %s left out; --running imports %s\n",
                     (unsigned long long)reading->skipped, one ? "" : "s", one ? "was" : "were",
                     one ? "was" : "were", one ? "it" : "them");
    }
    return EX_OK;
}

int import_export(struct cli *cli, const char *path, bool running, bool json)
{
    struct reading reading = {.cli = cli, .running = running};
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    int status, reported;

    if (!file) {
        cli_error("cannot read %s: %s", path, strerror(errno));
        return EX_NOINPUT;
    }
    status = cli_connect(cli);
    if (status == EX_OK) {
        status = read_lines(&reading, file, path);
        reported = report(&reading, json);
        status = status == EX_OK ? reported : status;
        status = status == EX_OK ? reading.status : status;
    }
    if (status == EX_OK || status == EX_DATAERR) {
        int replicated = cli_wait_replicas(cli, reading.added + reading.existing);
        status = status == EX_OK ? replicated : status;
    }
    command_free(&reading.call);
    /* closing a file that was only read loses nothing */
    if (!is_stdin) {
        (void)fclose(file);
    }
    return status;
}
