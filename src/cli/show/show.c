/*
 * leat show: one task, with its fields, its attempts, and the cause of its death.
 */
#include "cli/show/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/lib/output.h"
#include "cli/lib/text.h"
#include "cli/show/ended.h"
#include "cli/show/expand_id.h"
#include "cli/show/history.h"
#include "view/moment.h"
#include "view/reply_fields.h"
#include "view/task_view.h"
#include "view/usage.h"

#define TEXT_SHOWN 4096 /* bytes of a printable payload */
#define RAW_SHOWN 256   /* bytes of a binary payload */
#define SHORT_VALUE 200 /* bytes; a longer field is shown as a block */

static const char help[] =
    "Usage: leat show [OPTION]... ID\n"
    "Show everything about a task: its fields, its attempts, and the cause if it\n"
    "is a dead letter. ID is the task's id or a prefix of it (6 to 13 digits, but not\n"
    "10), its label (--id), or d and the id of a dead letter's entry. If no task in\n"
    "the queue has that label, it means the last one that ended with it. A task that\n"
    "is not in the queue is shown as the history has it, by its id, its label, or a\n"
    "prefix of an id that is unique among the 1000 tasks that ended last.\n"
    "\n"
    "Options:\n"
    "  --json      print JSON with unshortened fields\n"
    "  --payload   write only the payload's bytes\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails show 1769860800000-0\n"
    "  leat -q thumbnails show --payload order-17 > payload\n"
    "\n"
    "Exit codes:\n"
    "  0   success\n"
    "  1   there is no such task, or it has no payload\n"
    "  64  wrong usage\n" CLI_EXITS;

/* ---- for people */

static void add_text(struct buffer *out, const char *title, struct bytes value)
{
    /* a failed append marks the buffer */
    if (value.size == 0) {
        return;
    }
    (void)buffer_printf(out, "%-9s ", title);
    (void)text_append(out, value.data, value.size);
    (void)buffer_append_text(out, "\n");
}

static void add_time(struct buffer *out, const char *title, int64_t unix_ms)
{
    char local[MOMENT_SIZE], relative[MOMENT_SIZE];

    if (unix_ms <= 0) {
        return;
    }
    moment_local(unix_ms, local, sizeof local);
    moment_relative(unix_ms, clock_wall_ms(), relative, sizeof relative);
    /* a failed append marks the buffer */
    (void)buffer_printf(out, "%-9s %s (%s)\n", title, local, relative);
}

/* leat notes when a task was enqueued, unless its id has a time that cannot be. The note is lost
 * with an entry that was deleted or cannot be read. */
static void add_enqueued(struct buffer *out, const struct redisReply *row)
{
    int64_t unix_ms = fields_number(row, "enqueued_ms", 0), now_ms = clock_wall_ms();
    char tid[MOMENT_SIZE];

    bytes_copy(fields_bytes(row, "tid"), tid, sizeof tid);
    if (moment_is_past(unix_ms, now_ms)) {
        add_time(out, "enqueued", unix_ms);
    } else if (unix_ms == 0 && moment_is_past(strtoll(tid, NULL, 10), now_ms)) {
        add_text(out, "enqueued", bytes_of("unknown"));
    } else {
        add_text(out, "enqueued", bytes_of("unknown: the time in the id is wrong"));
    }
}

static void add_usage(struct buffer *out, struct bytes usage)
{
    /* a failed append marks the buffer */
    if (usage.size == 0) {
        return;
    }
    (void)buffer_printf(out, "%-9s ", "used");
    usage_append(out, usage);
    (void)buffer_append_text(out, "\n");
}

/* Adds what only the row of an ended task has. */
static void add_ended(struct buffer *out, const struct redisReply *row)
{
    int64_t took_us = fields_number(row, "duration_us", -1);
    int64_t waited_ms = fields_number(row, "waited_ms", -1);
    char span[MOMENT_SIZE];

    if (waited_ms >= 0) {
        moment_span(waited_ms, span, sizeof span);
        add_text(out, "waited", bytes_of(span));
    }
    if (took_us >= 0) {
        moment_span(took_us / 1000, span, sizeof span);
        add_text(out, "took", bytes_of(span));
    }
    add_time(out, "ended", fields_number(row, "ended_ms", 0));
    add_text(out, "lane", rows_is_ended(row) ? fields_bytes(row, "lane") : bytes_of(NULL));
    add_text(out, "command", rows_is_ended(row) ? fields_bytes(row, "command") : bytes_of(NULL));
}

static void add_summary(struct buffer *out, const struct redisReply *row)
{
    /* a failed append marks the buffer */
    add_text(out, "task", fields_bytes(row, "tid"));
    add_text(out, "label", fields_bytes(row, "id"));
    add_text(out, "state", fields_bytes(row, "state"));
    add_text(out, "outcome", fields_bytes(row, "outcome"));
    add_text(out, "cause", fields_bytes(row, "cause"));
    add_text(out, "status", fields_bytes(row, "status"));
    add_text(out, "reason", fields_bytes(row, "reason"));
    add_text(out, "letter", fields_bytes(row, "dead_id"));
    (void)buffer_printf(out, "%-9s %lld\n", "attempts",
                        (long long)fields_number(row, "attempts", 0));
    if (fields_number(row, "crashes", 0) > 0) {
        (void)buffer_printf(out, "%-9s %lld\n", "crashes",
                            (long long)fields_number(row, "crashes", 0));
    }
    add_text(out, "worker", fields_bytes(row, "worker"));
    add_enqueued(out, row);
    add_time(out, "due", fields_number(row, "due_ms", 0));
    add_time(out, "begun", fields_number(row, "begun_ms", fields_number(row, "begun", 0)));
    add_time(out, "died", fields_number(row, "died_ms", 0));
    add_ended(out, row);
    add_usage(out, fields_bytes(row, "usage"));
}

/* Shows text of several lines below its title, after bars. Of other bytes it shows only the start.
 */
static void add_block(struct buffer *out, const char *title, struct bytes value)
{
    bool printable = text_is_printable(value.data, value.size);
    size_t most = printable ? TEXT_SHOWN : RAW_SHOWN;
    size_t shown = value.size < most ? value.size : most;

    /* a failed append marks the buffer */
    if (printable && shown < value.size) {
        shown = bytes_whole(value.data, shown, shown);
    }
    (void)text_append(out, title, strlen(title));
    (void)buffer_printf(out, " (%zu bytes%s", value.size, printable ? "" : ", not text");
    if (shown < value.size) {
        (void)buffer_printf(out, ", the first %zu", shown);
    }
    (void)buffer_append_text(out, ")\n");
    (void)text_append_lines(out, value.data, shown, "    | ");
}

static void add_fields(struct buffer *out, const struct redisReply *fields)
{
    /* a failed append marks the buffer */
    (void)buffer_append_text(out, "fields\n");
    for (size_t i = 0; i < fields_count(fields); i++) {
        struct bytes name = fields_name_at(fields, i);
        struct bytes value = fields_value(fields_value_at(fields, i));
        char title[128] = "  ";
        bytes_copy(name, title + 2, sizeof title - 2);
        if (value.size > SHORT_VALUE || memchr(value.data, '\n', value.size) ||
            !text_is_printable(value.data, value.size)) {
            add_block(out, title, value);
            continue;
        }
        (void)text_append(out, title, strlen(title));
        (void)buffer_append_text(out, " = ");
        (void)text_append(out, value.data, value.size);
        (void)buffer_append_text(out, "\n");
    }
}

static int print_text(const struct task_view *found)
{
    struct output output = output_look();
    struct buffer page = BUFFER_INIT;
    struct bytes tail;
    int status;

    /* a failed append marks the buffer */
    add_summary(&page, found->row);
    add_fields(&page, found->fields);
    if (history_render(found->history, &output, &page) != 0) {
        page.failed = true;
    }
    tail = fields_bytes(found->row, "stdout");
    if (tail.size > 0) {
        add_block(&page, "end of stdout", tail);
    }
    tail = fields_bytes(found->row, "stderr");
    if (tail.size > 0) {
        add_block(&page, "end of stderr", tail);
    }
    (void)text_wrap(&page, 0, output.width);
    status = output_write(&page);
    buffer_free(&page);
    return status;
}

/* ---- the command */

static int print_payload(const char *id, const struct redisReply *fields)
{
    for (size_t i = 0; i < fields_count(fields); i++) {
        struct bytes value = fields_value(fields_value_at(fields, i));
        if (!bytes_equal(fields_name_at(fields, i), "payload")) {
            continue;
        }
        /* cli_flush reports failures */
        (void)fwrite(value.data, 1, value.size, stdout);
        return EX_OK;
    }
    cli_error("task %s has no payload", id);
    return SHOW_NOT_FOUND;
}

/* How to print an ended task, and the exit status of that. */
struct ended {
    const char *id;
    bool json, payload;
    int status;
};

static bool print_ended(void *context, const struct redisReply *row)
{
    struct ended *ended = context;
    struct buffer page = BUFFER_INIT;

    if (ended->payload) {
        cli_error("task %s has ended, and the history keeps no payloads", ended->id);
        ended->status = SHOW_NOT_FOUND;
        return false;
    }
    if (ended->json) {
        ended->status = output_json(rows_json(row), true);
        return false;
    }
    add_summary(&page, row);
    (void)text_wrap(&page, 0, output_look().width);
    ended->status = output_write(&page);
    buffer_free(&page);
    return false;
}

/* The task is not in the queue. */
static int show_ended(struct cli *cli, const char *id, const struct show_options *options)
{
    struct ended ended = {.id = id, .json = options->json, .payload = options->payload};
    bool found = false;
    int status = EX_OK;

    if (!options->only_dead) {
        status = ended_find(cli, id, print_ended, &ended, &found);
    }
    if (found || status != EX_OK) {
        return found ? ended.status : status;
    }
    cli_error("no %s %s in queue %s%s; see leat %s", options->only_dead ? "dead letter" : "task",
              id, cli->config->queue.name, expand_id_hint(id),
              options->only_dead ? "dead list" : "list");
    return SHOW_NOT_FOUND;
}

int show_task(struct cli *cli, const char *id, const struct show_options *options)
{
    struct redisReply *reply;
    struct task_view found;
    int status = cli_connect(cli);

    if (status != EX_OK) {
        return status;
    }
    reply = show_locate(cli, id, options->only_dead, &status);
    if (!reply) {
        return status != EX_OK ? status : show_ended(cli, id, options);
    }
    found = task_view_read(reply);
    if (options->payload) {
        status = print_payload(id, found.fields);
    } else if (options->json) {
        status = output_json(task_view_json(&found), true);
    } else {
        status = print_text(&found);
    }
    freeReplyObject(reply);
    return status;
}

int show_letter(struct cli *cli, const struct dead_letter *letter, struct rows_array *array)
{
    int status;
    struct redisReply *reply = show_locate_letter(cli, letter, &status);
    struct task_view found;

    if (!reply) {
        return status != EX_OK ? status : SHOW_NOT_FOUND;
    }
    found = task_view_read(reply);
    status = array ? rows_array_add(array, task_view_json(&found)) : print_text(&found);
    freeReplyObject(reply);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct show_options options = {0};
    const struct cli_option known[] = {
        {"--json", .flag = &options.json}, {"--payload", .flag = &options.payload}, {0}};
    int status = cli_options(cli, argc, argv, CLI_ONE_TASK, known);

    if (status == EX_OK && options.json && options.payload) {
        return cli_usage(cli, "give --json or --payload, not both");
    }
    return status == EX_OK ? show_task(cli, argv[optind], &options) : status;
}

const struct subcommand show_command = {"show", "Show everything about a task", help, run};
