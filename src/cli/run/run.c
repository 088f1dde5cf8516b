/*
 * leat run: runs a command on a worker as if it ran here.
 */
#include "cli/run/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/enqueue/enqueue.h"
#include "cli/enqueue/replica_wait.h"

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
    "the task running, and leat attach follows it again.\n"
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
    "  124 the task ran longer than its timeout\n"
    "  125 leat failed, or the task was not enqueued, was refused, did not start in\n"
    "      time (--expires), wrote too much output, or was lost; stderr says why\n"
    "  126 command and variables are too long together for the worker's system, or\n"
    "      --directory cannot be entered\n"
    "  128 plus N: signal N ended the command\n"
    "  130 the task was cancelled, or left running\n";

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
    /* with all other causes, a status is that of the process: exit, signal, killed, oom */
    number = exit_number(result->status);
    if (number > 0) {
        return number;
    }
    number = signal_number(result->status);
    return number > 0 ? 128 + number : RUN_FAILED;
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
        (void)snprintf(text, size, "cancelled%s%.*s", result->reason.size > 0 ? ": " : "",
                       (int)result->reason.size, result->reason.data);
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
    return RUN_FAILED;
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

static int enqueue(struct cli *cli, struct enqueue_options *options, char tid[QUEUE_CURSOR_SIZE])
{
    bool is_new;
    int status = task_enqueue(cli, options, tid, &is_new);

    if (status != EX_OK) {
        return status;
    }
    if (is_new) {
        (void)cli_wait_replicas(cli, 1); /* it prints the error; follow the task anyway */
        return EX_OK;
    }
    cli_error("not enqueued: task %s has the same label or unique key", tid);
    return RUN_FAILED;
}

/* Says that the command gets no input, if leat has some. A file that something has begun to read
 * belongs to that: leat runs in its loop. Returns true if it did. */
static bool note_stdin(void)
{
    struct stat status;
    int waiting = 0;

    if (fstat(STDIN_FILENO, &status) != 0) {
        return false;
    }
    if (S_ISREG(status.st_mode)) {
        waiting = lseek(STDIN_FILENO, 0, SEEK_CUR) == 0 && status.st_size > 0;
    } else if (!(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) ||
               ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0) {
        return false;
    }
    if (waiting > 0) {
        cli_error("the command does not get stdin, which has data; pass it with --stdin");
    }
    return waiting > 0;
}

/* Follows the task. The writer of stdin may be slower than leat, so stdin is looked at again at the
 * end. */
static int follow(struct cli *cli, const struct enqueue_options *options, const char *tid)
{
    bool noted = draft_has(&options->common, "payload") || note_stdin();
    int status = run_follow(cli, tid, draft_has(&options->common, "expires"));

    if (!noted) {
        (void)note_stdin();
    }
    return status;
}

static int start(struct cli *cli, struct enqueue_options *options, int argc, char **argv)
{
    char tid[QUEUE_CURSOR_SIZE];
    int status = cli_load(cli);

    if (status == EX_OK && optind == argc && !cli->config->task.command &&
        !draft_has(&options->common, "command")) {
        status = cli_usage(cli, "missing operand: give a command");
    }
    status = status == EX_OK ? task_complete(cli, options, argc, argv) : status;
    status = status == EX_OK ? add_defaults(cli, options) : status;
    status = status == EX_OK ? cli_connect(cli) : status;
    if (status != EX_OK) {
        return RUN_FAILED;
    }
    run_catch_signals();
    status = enqueue(cli, options, tid);
    return status == EX_OK ? follow(cli, options, tid) : RUN_FAILED;
}

static int take_stdin(const struct cli *cli, const struct cli_option *option, const char *value)
{
    (void)value;
    return task_take_payload(cli, option, "-");
}

/* Numbers of leat's own that the command may use as well would be mistaken for the command's: all
 * failures of leat have RUN_FAILED. */
static int run(struct cli *cli, int argc, char **argv)
{
    struct enqueue_options options = {0};
    const struct cli_option known[] = {
        {"--stdin", .value = CLI_NO_VALUE, .take = take_stdin, .context = &options},
        {.more = task_options, .context = &options},
    };
    int status = cli_options(cli, argc, argv, CLI_WORDS, known);

    if (status == EX_OK) {
        status = start(cli, &options, argc, argv);
    } else if (status != CLI_STOP) {
        status = RUN_FAILED;
    }
    task_options_free(&options);
    return status;
}

const struct subcommand run_command = {"run", "Run a command on a worker, and print its output",
                                       help, run};
