/*
 * leat logs: follows a task that runs on another host, as leat attach does.
 */
#include "cli/logs/logs.h"
#include "cli/run/run.h"

static int print(void *context, int number, struct bytes data, int64_t attempt)
{
    int status = logs_print_bytes(context, data, number == 2, attempt);

    return status == EX_OK ? cli_flush() : status;
}

int logs_follow_elsewhere(struct cli *cli, const struct logs_task *task,
                          const struct logs_options *options)
{
    struct logs_printer printer;
    struct run_watch watch = {.write = print, .context = &printer};

    if (options->times || options->json || options->attempt != 0 || options->lines != LOGS_ALL) {
        cli_error("task %s runs on another host: --times, --json, --attempt and --lines work on "
                  "that host only",
                  task->tid);
        return EX_USAGE;
    }
    logs_printer_init(&printer, options);
    (void)run_attach(cli, task->tid, &watch); /* its status is that of the command */
    if (printer.output.terminal) {
        logs_print_end(&printer);
    }
    return watch.failed != EX_OK ? watch.failed : cli_flush();
}
