/*
 * leat attach: follows a task that is in the queue, on whichever worker it runs.
 */
#include <unistd.h>

#include "cli/run/run.h"
#include "cli/show/expand_id.h"

static const char help[] =
    "Usage: leat attach [OPTION]... ID\n"
    "Follow a task: print its output as it comes, and exit with its exit status. It\n"
    "may run on any host, and need not have been added by leat run. ID is the task's\n"
    "id or its label (--id).\n"
    "\n"
    "leat first prints what is still there of the earlier output: for a task of leat\n"
    "run most of it, for others the last kilobytes, see [dead] output_tail. If the\n"
    "task has not started, leat waits.\n"
    "\n"
    "Ctrl-C or SIGTERM ends leat; the task goes on.\n"
    "\n"
    "Options:\n"
    "  -q, -c, -h           see leat --help\n"
    "\n"
    "Example:\n"
    "  leat -q builds attach 1769860800000-0\n"
    "\n"
    "Exit codes:\n"
    "  N   the exit status of the command\n"
    "  124 the task ran longer than its timeout\n"
    "  125 leat failed, or the task is unknown, was refused, did not start in time\n"
    "      (expires), wrote too much output, or was lost; stderr says why\n"
    "  126 command and variables are too long together for the worker's system, or\n"
    "      the task's directory cannot be entered\n"
    "  128 plus N: signal N ended the command\n"
    "  130 the task was cancelled, or a signal ended leat\n";

/* All failures of leat have RUN_FAILED, as in leat run. */
static int attach(struct cli *cli, int argc, char **argv)
{
    const struct cli_option known[] = {{0}};
    struct run_watch watch = {0};
    struct expanded_id expanded;
    int status = cli_options(cli, argc, argv, CLI_ONE_TASK, known);

    if (status == CLI_STOP) {
        return status;
    }
    status = status == EX_OK ? cli_load(cli) : status;
    status = status == EX_OK ? cli_connect(cli) : status;
    status = status == EX_OK ? expand_id(cli, argv[optind], &expanded) : status;
    if (status != EX_OK) {
        return RUN_FAILED;
    }
    run_catch_signals();
    return run_attach(cli, expanded.id, &watch);
}

const struct subcommand attach_command = {"attach", "Follow a task that runs, as leat run does",
                                          help, attach};
