/*
 * leat cancel: cancels tasks, whether they wait or run.
 */
#include "cli/control/targets.h"
#include "cli/lib/audit.h"
#include "cli/lib/cli.h"
#include "queue/calls.h"

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
    "  66  a task was not found, or stdin cannot be read\n" CLI_EXITS;

static const struct target_answer answers[] = {
    {"cancelled", "cancelled", "cancelled", .acted = true},
    {"asked", "asked", "asked, it runs on %s", "worker", .acted = true},
    {0},
};

/* The same for --now. */
static const struct target_answer answers_now[] = {
    {"cancelled", "cancelled", "cancelled", .acted = true},
    {"asked", "asked", "asked at once, it runs on %s", "worker", .acted = true},
    {0},
};

struct cancel {
    struct cli *cli;
    bool now;
};

static void begin(void *context, struct command *command)
{
    const struct cancel *cancel = context;

    queue_cancel_begin(command, &cancel->cli->queue, cancel->now);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct cancel cancel = {.cli = cli};
    struct targets targets = {.cli = cli,
                              .verb = "cancel",
                              .begin = begin,
                              .context = &cancel,
                              .done.event = "operator-cancel"};
    const struct cli_option options[] = {
        {"--now", .flag = &cancel.now}, {"--json", .flag = &targets.json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    if (optind == argc) {
        return cli_usage(cli, "missing operand: give task ids, or '-'");
    }
    targets.answers = cancel.now ? answers_now : answers;
    status = targets_act(&targets, argv + optind);
    if (targets.done.count > 0) {
        audit_record(cli, &targets.done, "cancelled %zu task%s", targets.done.count,
                     targets.done.count == 1 ? "" : "s");
    }
    return status;
}

const struct subcommand cancel_command = {"cancel", "Cancel tasks", help, run};
