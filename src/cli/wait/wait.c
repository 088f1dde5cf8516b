/*
 * leat wait: waits until tasks have ended and prints their results.
 */
#include "cli/wait/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/show/expand_id.h"
#include "cli/wait/await.h"

static const char help[] =
    "Usage: leat wait [OPTION]... ID...\n"
    "       leat wait [OPTION]... --all\n"
    "Wait until tasks have ended. Print a line for each as soon as it ends: its id,\n"
    "the outcome (succeeded, dead, cancelled or unknown), the cause, the number of\n"
    "attempts, and how long the last one ran. ID is a task's id, or its label (--id)\n"
    "while it is in the queue; '-' reads ids from stdin, one per line.\n"
    "\n"
    "The outcome of a task that ended before leat wait is known only if it kept a\n"
    "result (enqueue --result-ttl) or is a dead letter. If no worker can start tasks,\n"
    "stderr says why, and leat waits.\n"
    "\n"
    "Options:\n"
    "  --all               wait until no task is ready, running or retrying; delayed\n"
    "                      tasks do not count\n"
    "  --timeout DURATION  give up after DURATION\n"
    "  --json              print one JSON object per line\n"
    "  -q, -c, -h          see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat wait $(leat enqueue --result-ttl 1h ./import a.csv)\n"
    "  leat enqueue --result-ttl 1h --file jobs | leat wait --timeout 30m -\n"
    "  leat -q thumbnails wait --all && echo the queue is empty\n"
    "\n"
    "Exit codes:\n"
    "  0   all tasks succeeded\n"
    "  1   a task is dead, cancelled or unknown; with --all: one died or was\n"
    "      cancelled while leat waited\n"
    "  64  wrong usage\n"
    "  66  stdin cannot be read\n"
    "  69  Redis cannot be reached\n"
    "  74  the output cannot be written\n"
    "  75  not all tasks ended within --timeout, or Redis is busy at the start\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong\n";

/* ---- ids */

/* A zeroed list is empty. The ids are owned. */
struct id_list {
    char **ids;
    size_t count;
};

/* Takes ownership of the id; NULL means that there was no memory. */
static int add_id(struct id_list *list, char *id)
{
    char **grown = id ? array_grow((void *)list->ids, list->count, sizeof *grown) : NULL;

    if (!grown) {
        free(id);
        return cli_no_memory();
    }
    list->ids = grown;
    list->ids[list->count++] = id;
    return EX_OK;
}

static void free_ids(struct id_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->ids[i]);
    }
    free((void *)list->ids);
}

/* Reads ids from stdin and skips empty lines. */
static int read_ids(const struct cli *cli, struct id_list *list)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    int status = EX_OK;

    while (status == EX_OK && (size = getline(&line, &capacity, stdin)) >= 0) {
        if (size > 0 && line[size - 1] == '\n') {
            line[--size] = '\0';
        }
        status = cli_check_line(cli, line, (size_t)size);
        if (size == 0 || status != EX_OK) {
            continue;
        }
        status = add_id(list, line);
        line = NULL;
        capacity = 0;
    }
    if (status == EX_OK && ferror(stdin)) {
        cli_error("cannot read ids from stdin: %s", strerror(errno));
        status = EX_NOINPUT;
    }
    free(line);
    return status;
}

static int take_ids(const struct cli *cli, struct id_list *list, int count, char **words)
{
    int status = EX_OK;

    for (int i = 0; i < count && status == EX_OK; i++) {
        bool is_stdin = strcmp(words[i], "-") == 0;
        status = is_stdin ? read_ids(cli, list) : add_id(list, strdup(words[i]));
    }
    return status;
}

/* ---- waiting */

struct waiting {
    const struct wait_options *options;
    size_t not_succeeded;
};

static int on_ended(void *context, const char *tid, const char *asked, const struct result *result)
{
    struct waiting *waiting = context;
    int status = EX_OK;

    waiting->not_succeeded += result->state != RESULT_SUCCEEDED;
    if (waiting->options->json) {
        status = result_print_json(tid, asked, result);
    } else {
        result_print(tid, asked, result);
    }
    return status == EX_OK ? cli_flush() : status;
}

/* Expands prefixes of ids. */
static int expand_ids(struct cli *cli, const struct id_list *list)
{
    struct expanded_id expanded;
    int status = cli_connect(cli);

    for (size_t i = 0; i < list->count && status == EX_OK; i++) {
        status = expand_id(cli, list->ids[i], &expanded);
        if (status == EX_OK && expanded.id != list->ids[i]) {
            free(list->ids[i]);
            list->ids[i] = strdup(expanded.id);
            status = list->ids[i] ? EX_OK : cli_no_memory();
        }
    }
    return status;
}

static int wait_tasks(struct cli *cli, const struct wait_options *options,
                      const struct id_list *list)
{
    struct waiting waiting = {.options = options};
    const struct await_events events = {.ended = on_ended, .context = &waiting};
    size_t left = 0;
    int status = await_tasks(cli, list->ids, list->count, options->deadline_ns, &events, &left);

    if (status == EX_TEMPFAIL) {
        cli_error("%zu of %zu tasks did not end within %s", left, list->count, options->timeout);
    }
    return status == EX_OK && waiting.not_succeeded > 0 ? WAIT_NOT_ALL : status;
}

static int take_timeout(const struct cli *cli, const struct cli_option *option, const char *value)
{
    struct wait_options *options = option->context;
    int64_t ms = 0;
    int status = cli_duration(cli, option->name, value, &ms);

    options->deadline_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS;
    units_format_duration(ms, options->timeout, sizeof options->timeout);
    return status;
}

static int wait_for(struct cli *cli, const struct wait_options *options, int count, char **words)
{
    struct id_list list = {0};
    int status;

    if (options->all && count > 0) {
        return cli_usage(cli, "give ids or --all, not both");
    }
    if (!options->all && count == 0) {
        return cli_usage(cli, "missing operand: give task ids, '-' or --all");
    }
    if (options->all) {
        return wait_all(cli, options);
    }
    /* report a wrong configuration before reading stdin */
    status = cli_load(cli);
    status = status == EX_OK ? take_ids(cli, &list, count, words) : status;
    if (status == EX_OK && list.count > 0) {
        status = expand_ids(cli, &list);
    }
    if (status == EX_OK && list.count > 0) {
        status = wait_tasks(cli, options, &list);
    }
    free_ids(&list);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct wait_options options = {.deadline_ns = INT64_MAX};
    const struct cli_option known[] = {{"--all", .flag = &options.all},
                                       {"--timeout", .take = take_timeout, .context = &options},
                                       {"--json", .flag = &options.json},
                                       {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, known);

    return status == EX_OK ? wait_for(cli, &options, argc - optind, argv + optind) : status;
}

const struct subcommand wait_command = {"wait", "Wait until tasks end, or until the queue is empty",
                                        help, run};
