/*
 * leat run: runs a command on a worker as if it ran here.
 */
#include "cli/run/run.h"

#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/units.h"
#include "cli/enqueue/enqueue.h"
#include "cli/enqueue/replica_wait.h"
#include "cli/lib/reply_fields.h"
#include "queue/replies.h"

#define LEAST_TTL_MS 60000
#define DEFAULT_TTL "1h"

static const char help[] =
    "Usage: leat run [OPTION]... [--] COMMAND [ARG]...\n"
    "Run a command on one of the queue's workers as if it ran here: print its output\n"
    "as it comes, and exit with its exit status.\n"
    "\n"
    "The command is a task: it waits for a free slot, and becomes a dead letter if it\n"
    "fails. It is tried once unless --max-attempts is given, but runs again if its\n"
    "worker is lost. If no worker can start it, stderr says why, and leat waits.\n"
    "Ctrl-C or SIGTERM cancels the task and waits for its end; a second signal leaves\n"
    "the task running.\n"
    "\n"
    "A single argument is a shell line. Several arguments are a program and its\n"
    "arguments; leat quotes each of them for the shell. Options end where the command\n"
    "begins.\n"
    "\n"
    "Options:\n"
    "  --stdin              pass leat's stdin to the command\n"
    /* clang-format off */
    TASK_OPTIONS_HELP
    /* clang-format on */
    "  -q, -c, -h           see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q builds run make -C /srv/src all\n"
    "  leat -q builds run 'grep -c error *.log | sort'\n"
    "  leat run --stdin -- wc -l < file\n"
    "\n"
    "Exit codes:\n"
    "  N   the exit status of the command\n"
    "  64  wrong usage\n"
    "  65  the task was refused\n"
    "  66  the payload cannot be read\n"
    "  69  Redis cannot be reached\n"
    "  74  the output cannot be written\n"
    "  75  the task did not start in time (--expires) or was not enqueued: the\n"
    "      queue is full, or a task with its --id or --unique key exists\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong\n"
    "  124 the task ran longer than its timeout\n"
    "  125 the task wrote too much output, or was lost\n"
    "  126 the command is too long to be executed, or --directory cannot be entered\n"
    "  128 plus N: signal N ended the command\n"
    "  130 the task was cancelled, or left running\n";

enum { OPTION_STDIN = TASK_OPTION_END };

static const struct option options_table[] = {
    CLI_COMMON_OPTIONS,
    TASK_OPTIONS,
    {"stdin", no_argument, NULL, OPTION_STDIN},
    {0},
};

/* ---- exit statuses */

/* Parses "SIGTERM", or "SIG40" for a signal without a name. Returns 0 if it is no signal. */
static int signal_number(struct bytes name)
{
    char text[32];
    int64_t given;

    bytes_copy(name, text, sizeof text);
    if (strncmp(text, "SIG", 3) != 0) {
        return 0;
    }
    for (int number = 1; number < NSIG; number++) {
        const char *known = sigabbrev_np(number);
        if (known && strcmp(known, text + 3) == 0) {
            return number;
        }
    }
    return units_parse_integer(text + 3, 1, NSIG - 1, &given) == 0 ? (int)given : 0;
}

/* Returns −1 if the text is no exit status. */
static int exit_number(struct bytes status)
{
    char text[32];
    int64_t number;

    bytes_copy(status, text, sizeof text);
    return units_parse_integer(text, 0, 255, &number) == 0 ? (int)number : -1;
}

static int dead_status(const struct result *result)
{
    int number;

    if (bytes_equal(result->cause, "timeout")) {
        return RUN_TIMEOUT;
    }
    if (bytes_equal(result->cause, "cannot-execute")) {
        return RUN_CANNOT_EXECUTE;
    }
    if (bytes_equal(result->cause, "refused")) {
        return EX_DATAERR;
    }
    if (bytes_equal(result->cause, "expired")) {
        return EX_TEMPFAIL;
    }

    /* with all other causes, a status is that of the process: exit, signal, killed, oom */
    number = exit_number(result->status);
    if (number > 0) {
        return number;
    }
    number = signal_number(result->status);
    return number > 0 ? 128 + number : RUN_LOST;
}

int run_status(const struct result *result, char *text, size_t size)
{
    char why[128];
    int number;

    text[0] = '\0';
    result_why(result, why, sizeof why);
    switch (result->state) {
    case RESULT_SUCCEEDED:
        number = exit_number(result->status);
        return number > 0 ? number : EX_OK;
    case RESULT_CANCELLED:
        (void)snprintf(text, size, "cancelled");
        return RUN_CANCELLED;
    case RESULT_DEAD:
        if (!bytes_equal(result->cause, "exit")) {
            (void)snprintf(text, size, "%s%s%.*s", why, result->reason.size > 0 ? ": " : "",
                           (int)result->reason.size, result->reason.data);
        }
        return dead_status(result);
    case RESULT_UNKNOWN:
        break;
    }
    (void)snprintf(text, size, "no longer queued, and no result was kept");
    return RUN_LOST;
}

/* ---- the command */

/* Adds the fields that leat run needs, unless options set them. */
static int add_defaults(const struct cli *cli, struct enqueue_options *options)
{
    int64_t ms;
    bool fine;

    for (size_t i = 0; i < options->common.count; i++) {
        const struct task_field *field = &options->common.fields[i];
        if (bytes_equal(field->name, "result_ttl") &&
            units_parse_duration(field->value.data, &ms) == 0 && ms < LEAST_TTL_MS) {
            return cli_usage(
                cli, "--result-ttl must be at least 1m, because leat run waits for the result");
        }
    }
    fine = task_add_text(options, "live", "1") == EX_OK &&
           (draft_has(&options->common, "result_ttl") ||
            task_add_text(options, "result_ttl", DEFAULT_TTL) == EX_OK) &&
           (draft_has(&options->common, "max_attempts") ||
            task_add_text(options, "max_attempts", "1") == EX_OK);
    return fine ? EX_OK : cli_no_memory();
}

static int enqueue(struct cli *cli, struct enqueue_options *options, char *tid, size_t size)
{
    struct redisReply *reply;
    bool is_new;
    int status;

    reply = task_enqueue(cli, options, &status);
    if (!reply) {
        return status;
    }
    is_new = bytes_equal(fields_value(reply->element[1]), "new");
    bytes_copy(fields_value(reply->element[2]), tid, size);
    freeReplyObject(reply);
    if (is_new) {
        (void)cli_wait_replicas(cli, 1); /* it prints the error; follow the task anyway */
        return EX_OK;
    }
    cli_error("not enqueued: task %s with this id or key is already in the queue", tid);
    return EX_TEMPFAIL;
}

static int start(struct cli *cli, struct enqueue_options *options, int argc, char **argv)
{
    char tid[QUEUE_CURSOR_SIZE];
    int status = cli_load(cli);

    if (status == EX_OK && optind == argc && !cli->config->task.command &&
        !draft_has(&options->common, "command")) {
        status = cli_usage(cli, "missing operand: give a command");
    }
    if (status == EX_OK) {
        status = task_complete(cli, options, argc, argv);
    }
    if (status == EX_OK) {
        status = add_defaults(cli, options);
    }
    if (status == EX_OK) {
        status = cli_connect(cli);
    }
    if (status != EX_OK) {
        return status;
    }
    run_catch_signals();
    status = enqueue(cli, options, tid, sizeof tid);
    return status == EX_OK ? run_follow(cli, tid) : status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct enqueue_options options = {0};
    int letter, status = EX_OK;

    /* '+': options after the first word belong to the command */
    while (status == EX_OK && (letter = cli_option(cli, argc, argv, "+:" CLI_COMMON_LETTERS,
                                                   options_table, &status)) != CLI_OPTION_END) {
        if (letter == CLI_OPTION_STOP) {
            goto done;
        }
        if (letter == OPTION_STDIN) {
            optarg = (char *)"-";
            letter = TASK_OPTION_PAYLOAD;
        }
        status = task_option(cli, &options, letter);
    }
    if (status == EX_OK) {
        status = start(cli, &options, argc, argv);
    }
done:
    task_options_free(&options);
    return status;
}

const struct subcommand run_command = {"run", "Run a command on a worker, and print its output",
                                       help, run};
