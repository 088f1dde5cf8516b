/*
 * leat dead: the options of its actions.
 */
#include "cli/dead/dead.h"

#include <string.h>

#define DEFAULT_LIMIT 20

static const char help[] =
    "Usage: leat dead list [ID... | FILTER...] [--limit N] [--json]\n"
    "       leat dead show [--json | --payload] ID... | --all | FILTER...\n"
    "       leat dead retry [--dry-run] [--json] ID... | --all | FILTER...\n"
    "       leat dead drop [--dry-run] [--yes] [--json] ID... | --all | FILTER...\n"
    "List, show, retry or delete dead letters: tasks that failed for good. ID is a\n"
    "task's id, d and the id of the dead letter's entry, or a label: it means the\n"
    "newest dead letter with that label.\n"
    "\n"
    "retry puts tasks back into the queue with their ids, unique keys and histories;\n"
    "all their attempts start over. drop deletes dead letters.\n"
    "\n"
    "Filters; a dead letter must match all of them:\n"
    "  --cause CAUSE     exit, signal, killed, oom, timeout, output-limit,\n"
    "                    cannot-execute, refused, reported, no-verdict, check,\n"
    "                    crash, expired, vanished, damaged\n"
    "  --older-than AGE  died more than AGE ago, such as 2d\n"
    "  --newer-than AGE  died less than AGE ago\n"
    "  --lane NAME       was in this lane; '' means no lane\n"
    "  --label GLOB      its label matches GLOB, such as 'order-*'\n"
    "  --command GLOB    its whole command matches GLOB, such as 'make *'\n"
    "\n"
    "Options:\n"
    "  --all             select every dead letter\n"
    "  --dry-run         change nothing; print how many match, and the first ones\n"
    "  --yes             drop by --all or filter without asking\n"
    "  --limit N         with list and --dry-run: list at most N dead letters\n"
    "                    (default: 20); 0 lists all\n"
    "  --json            print JSON\n"
    "  --payload         with show and one ID: write only the payload's bytes\n"
    "  -q, -c, -h        see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails dead list --cause timeout\n"
    "  leat -q thumbnails dead retry --command 'make *' --newer-than 1h --dry-run\n"
    "  leat -q thumbnails dead drop --older-than 30d --yes\n"
    "\n"
    "Exit codes:\n"
    "  0   success\n"
    "  1   an ID was not found, or dropping was not confirmed\n"
    "  64  wrong usage\n"
    "  65  a dead letter was refused\n" CLI_EXITS;

/* ---- actions */

/* Without a selection nothing is selected, except for a list. */
static int check_choice(const struct cli *cli, const struct dead_options *options,
                        bool may_be_empty)
{
    if (options->id_count > 0 && (options->all || row_filter_is_set(&options->filter))) {
        return cli_usage(cli, "give ids, or --all or filters, not both");
    }
    if (options->id_count == 0 && !options->all && !row_filter_is_set(&options->filter) &&
        !may_be_empty) {
        return cli_usage(cli, "missing operand: give ids, --all, or a filter");
    }
    return EX_OK;
}

static int run_retry(struct cli *cli, const struct dead_options *options)
{
    return dead_act(cli, options, true);
}

static int run_drop(struct cli *cli, const struct dead_options *options)
{
    return dead_act(cli, options, false);
}

/* Refuses options that the action would ignore: a user of "drop --limit 5" expects that at most 5
 * go. */
static int check_options(const struct cli *cli, const char *action,
                         const struct dead_options *options)
{
    if (options->limit >= 0 && strcmp(action, "list") != 0 && !options->dry_run) {
        return cli_usage(cli, "--limit is only for list and --dry-run; select by ids or filters");
    }
    if (options->payload && strcmp(action, "show") != 0) {
        return cli_usage(cli, "--payload is only for show");
    }
    if (options->payload && options->json) {
        return cli_usage(cli, "give --json or --payload, not both");
    }
    return EX_OK;
}

static int run_action(struct cli *cli, const char *name, struct dead_options *options)
{
    static const char *const names[] = {"list", "show", "retry", "drop"};
    static int (*const actions[])(struct cli * cli, const struct dead_options *options) = {
        dead_list, dead_show, run_retry, run_drop};
    char hint[64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            int status = check_options(cli, name, options);
            status = status == EX_OK ? check_choice(cli, options, i == 0) : status;
            options->limit = options->limit < 0 ? DEFAULT_LIMIT : options->limit;
            return status == EX_OK ? actions[i](cli, options) : status;
        }
    }
    cli_suggest(name, names, sizeof names / sizeof *names, hint, sizeof hint);
    return cli_usage(cli, "unknown action: %s;%s use list, show, retry or drop", name, hint);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct dead_options options = {.filter = ROW_FILTER_ANY, .limit = -1};
    const struct cli_option known[] = {
        {"--cause", .text = &options.filter.cause, .take = row_filter_check_cause},
        {"--older-than", .duration_ms = &options.filter.older_ms},
        {"--newer-than", .duration_ms = &options.filter.newer_ms},
        {"--lane", .text = &options.filter.lane},
        {"--label", .text = &options.filter.label},
        {"--command", .text = &options.filter.command},
        {"--all", .flag = &options.all},
        {"--dry-run", .flag = &options.dry_run},
        {"--yes", .flag = &options.yes},
        {"--limit", .number = &options.limit},
        {"--json", .flag = &options.json},
        {"--payload", .flag = &options.payload},
        {0},
    };
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, known);

    if (status != EX_OK) {
        return status;
    }
    if (optind >= argc) {
        return cli_usage(cli, "missing operand: give list, show, retry or drop");
    }
    options.ids = argv + optind + 1;
    options.id_count = (size_t)(argc - optind - 1);
    return run_action(cli, argv[optind], &options);
}

const struct subcommand dead_command = {"dead", "List, show, retry or delete dead letters", help,
                                        run};
