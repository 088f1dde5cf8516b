/*
 * leat explain: why a task, a lane or the queue does not run, or what became of the task.
 */
#include "view/explain.h"

#include <stdio.h>
#include <string.h>

#include <getopt.h>
#include <hiredis/hiredis.h>

#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "cli/lib/text.h"
#include "cli/show/ended.h"
#include "cli/show/history.h"
#include "cli/show/show.h"
#include "queue/calls.h"
#include "view/reply_json.h"

#define BLOCKED 1 /* exit status */
#define UNKNOWN 2 /* exit status */

static const char help[] =
    "Usage: leat explain [OPTION]... [ID | --lane LANE]\n"
    "Print every reason why a task does not run, or what became of it; or why no task\n"
    "of a lane, or of the whole queue, starts. ID is as for leat show. Reasons that\n"
    "block are marked with !.\n"
    "\n"
    "Options:\n"
    "  --lane LANE  explain a lane; '' means the tasks without a lane that wait like\n"
    "               those of a lane\n"
    "  --json       print JSON\n"
    "  -q, -c, -h   see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails explain 1769860800000-0\n"
    "  leat -q thumbnails explain --lane archive\n"
    "  leat -q thumbnails explain || echo 'nothing starts'\n"
    "\n"
    "Exit codes:\n"
    "  0   the task runs, will run without anybody's doing, or has succeeded; or\n"
    "      tasks of the lane or the queue can start\n"
    "  1   blocked until somebody acts or a fault ends; or dead, or cancelled\n"
    "  2   unknown: no such task or lane, no result was kept, and the history does\n"
    "      not have the task\n"
    "  64  wrong usage\n" CLI_EXITS;

/* The thing that the command explains, and its kind. */
struct asked {
    enum explain_subject subject;
    const char *what; /* of leat_explain */
    const char *name; /* of the task or lane, or else of the queue */
    bool json;
};

static int exit_status_of(enum explain_verdict verdict)
{
    switch (verdict) {
    case EXPLAIN_RUNS:
    case EXPLAIN_WILL_RUN:
    case EXPLAIN_OPEN:
    case EXPLAIN_SUCCEEDED:
        return EX_OK;
    case EXPLAIN_BLOCKED:
    case EXPLAIN_CANCELLED:
    case EXPLAIN_DEAD:
        return BLOCKED;
    case EXPLAIN_UNKNOWN:
        break;
    }
    return UNKNOWN;
}

/* ---- for people */

static enum text_style style_of(int exit_status)
{
    return exit_status == EX_OK ? TEXT_GREEN : exit_status == BLOCKED ? TEXT_RED : TEXT_YELLOW;
}

/* "task order-17, 1769860800000-0: blocked" */
static void add_title(struct buffer *page, const struct asked *asked,
                      const struct explanation *explanation, bool color)
{
    struct bytes tid = fields_bytes(explanation->row, "tid");
    const char *verdict = explain_verdict_name(explanation->verdict);

    /* a failed append marks the buffer */
    if (asked->subject == EXPLAIN_LANE && !*asked->name) {
        (void)buffer_append_text(page, "tasks without a lane");
    } else {
        (void)buffer_printf(page, "%s ", asked->what);
        (void)text_append(page, asked->name, strlen(asked->name));
    }
    if (tid.size > 0 && !bytes_equal(tid, asked->name)) {
        (void)buffer_append_text(page, ", ");
        (void)text_append(page, tid.data, tid.size);
    }
    (void)buffer_append_text(page, ": ");
    (void)text_style(page, style_of(exit_status_of(explanation->verdict)), color);
    (void)buffer_append_text(page, explanation->verdict == EXPLAIN_WILL_RUN ? "will run" : verdict);
    (void)text_style(page, TEXT_PLAIN, color);
    (void)buffer_append_text(page, "\n");
}

static int print_text(const struct asked *asked, const struct explanation *explanation)
{
    struct output output = output_look();
    struct buffer page = BUFFER_INIT;
    int status;

    add_title(&page, asked, explanation, output.color);
    /* a failed append marks the buffer */
    for (size_t i = 0; i < explanation->count; i++) {
        const struct explain_reason *reason = &explanation->reasons[i];
        (void)buffer_append_text(&page, reason->blocks ? "  ! " : "  - ");
        (void)text_append(&page, reason->text.data, reason->text.size);
        (void)buffer_append_text(&page, "\n");
    }
    (void)text_wrap(&page, 0, output.width);
    status = output_write(&page);
    buffer_free(&page);
    return status;
}

/* ---- as JSON */

static json_t *reason_json(const struct explain_reason *reason)
{
    json_t *object = json_pack("{s:s, s:b}", "reason", reason->name, "blocks", (int)reason->blocks);

    output_put_bytes(&object, "text", buffer_bytes(&reason->text));
    for (size_t i = 0; i < reason->value_count; i++) {
        const struct explain_value *value = &reason->values[i];
        if (value->text.data) {
            output_put_bytes(&object, value->name, value->text);
        } else {
            output_put(&object, value->name, json_integer((json_int_t)value->number));
        }
    }
    return object;
}

static json_t *explanation_json(const struct cli *cli, const struct asked *asked,
                                const struct explanation *explanation)
{
    json_t *object = json_pack("{s:s, s:I, s:s}", "queue", cli->config->queue.name, "now_ms",
                               (json_int_t)explanation->status.now_ms, "verdict",
                               explain_verdict_name(explanation->verdict));
    json_t *reasons = json_array();

    for (size_t i = 0; i < explanation->count; i++) {
        output_push(&reasons, reason_json(&explanation->reasons[i]));
    }
    output_put(&object, "reasons", reasons);
    if (asked->subject == EXPLAIN_LANE) {
        output_put_bytes(&object, "lane", bytes_of(asked->name));
    }
    if (fields_count(explanation->row) > 0) {
        output_put(&object, "task", fields_json(explanation->row));
        output_put(&object, "history", history_json(explanation->history));
    }
    return object;
}

/* ---- the command */

/* The explanation that is printed, and the exit status. */
struct printing {
    struct cli *cli;
    const struct asked *asked;
    struct redisReply *reply;
    struct explanation explanation; /* of the reply */
    bool is_printed;
    int status;
};

static void print(struct printing *printing)
{
    const struct explanation *explanation = &printing->explanation;

    printing->status =
        printing->asked->json
            ? output_json(explanation_json(printing->cli, printing->asked, explanation), true)
            : print_text(printing->asked, explanation);
    if (printing->status == EX_OK) {
        printing->status = exit_status_of(explanation->verdict);
    }
    printing->is_printed = true;
}

static bool print_ended(void *context, const struct redisReply *row)
{
    struct printing *printing = context;

    explain_by_history(&printing->explanation, row);
    print(printing);
    return false;
}

static void forget(struct printing *printing)
{
    explain_free(&printing->explanation);
    freeReplyObject(printing->reply);
    printing->reply = NULL;
}

/* Asks by that name of the task or lane. Returns 0, or an exit status after printing the error. */
static int ask(struct printing *printing, struct bytes name)
{
    struct cli *cli = printing->cli;
    struct command command = {0};
    int status = EX_OK;

    queue_ask_why(&command, &cli->queue, printing->asked->what, name);
    forget(printing);
    printing->reply = cli_call(cli, &command, "cannot explain", EXPLAIN_ELEMENTS, &status);
    if (printing->reply && explain_read(printing->reply, printing->asked->subject,
                                        &cli->config->queue, &printing->explanation) != 0) {
        status = cli_no_memory();
    }
    return status;
}

/* The task has neither that id nor, in the queue, that label. */
static int ask_located(struct printing *printing)
{
    int status = EX_OK;
    struct redisReply *found = show_locate(printing->cli, printing->asked->name, false, &status);

    if (found) {
        struct dead_letter letter = dead_letter(found->element[2]);
        char entry[sizeof letter.dead_id + 1];
        (void)snprintf(entry, sizeof entry, "d%s", letter.dead_id);
        status = ask(printing, bytes_of(*letter.dead_id ? entry : letter.tid));
    }
    freeReplyObject(found);
    return status;
}

static bool is_unknown_task(const struct printing *printing)
{
    return printing->asked->subject == EXPLAIN_TASK &&
           printing->explanation.verdict == EXPLAIN_UNKNOWN;
}

static int explain(struct cli *cli, struct asked *asked)
{
    struct printing printing = {.cli = cli, .asked = asked};
    bool found = false;
    int status = cli_connect(cli);

    if (status == EX_OK) {
        status = ask(&printing, bytes_of(asked->name));
    }
    if (status == EX_OK && is_unknown_task(&printing)) {
        status = ask_located(&printing);
    }
    if (status == EX_OK && is_unknown_task(&printing)) {
        status = ended_find(cli, asked->name, print_ended, &printing, &found);
    }
    if (status == EX_OK && !printing.is_printed) {
        if (asked->subject == EXPLAIN_QUEUE) {
            asked->name = cli->config->queue.name;
        }
        print(&printing);
    }
    forget(&printing);
    return status == EX_OK ? printing.status : status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct asked asked = {.subject = EXPLAIN_QUEUE, .what = "queue", .name = ""};
    const char *lane = NULL;
    const struct cli_option known[] = {
        {"--lane", .text = &lane}, {"--json", .flag = &asked.json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, known);

    if (status != EX_OK) {
        return status;
    }
    if (argc - optind + (lane ? 1 : 0) > 1) {
        return cli_usage(cli, "give one task id, or --lane, or nothing for the queue");
    }
    if (lane) {
        asked = (struct asked){EXPLAIN_LANE, "lane", lane, asked.json};
    } else if (argc > optind) {
        asked = (struct asked){EXPLAIN_TASK, "task", argv[optind], asked.json};
    }
    return explain(cli, &asked);
}

const struct subcommand explain_command = {
    "explain", "Print why a task, a lane or the queue does not run", help, run};
