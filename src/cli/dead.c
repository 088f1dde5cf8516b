/*
 * leat dead: the options of its four actions, and the list.
 */
#include "cli/dead.h"

#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/record.h"
#include "cli/rows.h"
#include "cli/show.h"
#include "cli/table.h"

#define DEFAULT_LIMIT 20

static const char help[] =
    "Usage: leat dead list [FILTER]... [--limit N] [--json]\n"
    "       leat dead show [--json | --payload] ID\n"
    "       leat dead retry [--dry-run] [--json] ID... | --all | FILTER...\n"
    "       leat dead drop [--dry-run] [--yes] [--json] ID... | --all | FILTER...\n"
    "Look after dead letters: tasks that failed for good. retry puts them into the queue again,\n"
    "with their ids and histories and all their attempts anew; drop deletes them.\n"
    "ID is the task's id, or that of the dead letter's entry.\n"
    "\n"
    "Filters; all given must fit:\n"
    "  --cause CAUSE         exit, signal, timeout, refused, crash, expired, vanished\n"
    "  --older-than AGE      that died longer ago, such as 2d\n"
    "  --matching GLOB       whose command is like that, such as 'make *'\n"
    "\n"
    "Options:\n"
    "  --all                 every dead letter\n"
    "  --dry-run             only say which\n"
    "  --yes                 drop by --all or filter without asking\n"
    "  --limit N             list at most so many (20); 0 lists all\n"
    "  --json                as JSON; what is not UTF-8 is in NAME_base64\n"
    "  -q, -c, -h            as in leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails dead list --cause timeout\n"
    "  leat -q thumbnails dead retry --matching 'make thumbs*'\n"
    "  leat -q thumbnails dead drop --older-than 30d --yes\n"
    "\n"
    "Exit codes: 0 done; 1 an ID was not found, or dropping was not confirmed; 64 usage; 65 a\n"
    "letter was refused; 69 Redis cannot be reached; 74 the output cannot be written; 75 Redis is\n"
    "busy; 77 denied by Redis; 78 configuration.\n";

enum {
    OPTION_CAUSE = 256,
    OPTION_OLDER,
    OPTION_MATCHING,
    OPTION_ALL,
    OPTION_DRY_RUN,
    OPTION_YES,
    OPTION_LIMIT,
    OPTION_JSON,
    OPTION_PAYLOAD,
};

static const struct option options_table[] = {
    CLI_COMMON_OPTIONS,
    {"cause", required_argument, NULL, OPTION_CAUSE},
    {"older-than", required_argument, NULL, OPTION_OLDER},
    {"matching", required_argument, NULL, OPTION_MATCHING},
    {"all", no_argument, NULL, OPTION_ALL},
    {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
    {"yes", no_argument, NULL, OPTION_YES},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"payload", no_argument, NULL, OPTION_PAYLOAD},
    {0},
};

/* ---- the list */

struct listing {
    const struct dead_options *options;
    int64_t shown, now_ms;
    bool cut;
    int status;
    struct table table;
    struct rows_array array;
};

static void add_row(struct listing *listing, const struct redisReply *row)
{
    struct table *table = &listing->table;
    struct bytes tid = record_bytes(row, "tid"), reason = record_bytes(row, "reason");

    table_add(table, tid.data, tid.size);
    rows_add_ago(table, record_number(row, "died_ms", 0), listing->now_ms);
    rows_add_cause(table, row);
    table_printf(table, "%lld", (long long)record_number(row, "attempts", 0));
    rows_add_command(table, row);
    table_add(table, reason.data, text_whole(reason.data, reason.size));
}

static bool visit(void *context, const struct redisReply *row)
{
    struct listing *listing = context;

    if (listing->options->limit > 0 && listing->shown == listing->options->limit) {
        listing->cut = true;
        return false;
    }
    listing->shown++;
    if (listing->options->json)
        listing->status = rows_array_add(&listing->array, rows_json(row));
    else
        add_row(listing, row);

    /* a reader that has gone ends the walk */
    return listing->status == EX_OK && !ferror(stdout);
}

int dead_list(struct cli *cli, const struct dead_options *options)
{
    static const struct table_column columns[] = {
        {"ID", false, false},   {"DIED", true, false},    {"CAUSE", false, false},
        {"TRIES", true, false}, {"COMMAND", false, true}, {"REASON", false, true},
    };
    struct listing listing = {
        .options = options,
        .now_ms = clock_wall_ms(),
        .table = {.columns = columns, .column_count = sizeof columns / sizeof *columns},
    };
    int status = dead_walk(cli, options, visit, &listing);

    if (status == EX_OK)
        status = listing.status;
    if (status == EX_OK && options->json)
        rows_array_end(&listing.array);
    else if (status == EX_OK)
        status =
            rows_print(&listing.table, "dead letters", listing.cut ? options->limit : 0, false);
    table_free(&listing.table);
    return status;
}

/* ---- actions */

static int run_list(struct cli *cli, const struct dead_options *options)
{
    if (options->id_count > 0)
        return cli_usage(cli, "list takes filters, not ids; leat dead show ID shows one letter");
    return dead_list(cli, options);
}

static int run_show(struct cli *cli, const struct dead_options *options)
{
    struct show_options show = {
        .json = options->json, .payload = options->payload, .only_dead = true};

    if (options->id_count != 1)
        return cli_usage(cli, "show takes one id");
    return show_task(cli, options->ids[0], &show);
}

static int run_retry(struct cli *cli, const struct dead_options *options)
{
    return dead_act(cli, options, true);
}

static int run_drop(struct cli *cli, const struct dead_options *options)
{
    return dead_act(cli, options, false);
}

static int run_action(struct cli *cli, const char *name, const struct dead_options *options)
{
    static const char *const names[] = {"list", "show", "retry", "drop"};
    static int (*const actions[])(struct cli * cli, const struct dead_options *options) = {
        run_list, run_show, run_retry, run_drop};
    char hint[64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return actions[i](cli, options);
    }
    cli_suggest(name, names, sizeof names / sizeof *names, hint, sizeof hint);
    return cli_usage(cli, "no such action: %s;%s it is list, show, retry or drop", name, hint);
}

static int take_option(const struct cli *cli, struct dead_options *options, int letter)
{
    switch (letter) {
    case OPTION_CAUSE:
        options->cause = optarg;
        return EX_OK;
    case OPTION_OLDER:
        return cli_duration(cli, "--older-than", optarg, &options->older_ms);
    case OPTION_MATCHING:
        options->matching = optarg;
        return EX_OK;
    case OPTION_ALL:
        options->all = true;
        return EX_OK;
    case OPTION_DRY_RUN:
        options->dry_run = true;
        return EX_OK;
    case OPTION_YES:
        options->yes = true;
        return EX_OK;
    case OPTION_LIMIT:
        return cli_integer(cli, "--limit", optarg, 0, &options->limit);
    case OPTION_JSON:
        options->json = true;
        return EX_OK;
    default:
        options->payload = true;
        return EX_OK;
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct dead_options options = {.older_ms = -1, .limit = DEFAULT_LIMIT};
    int letter, status = EX_OK;

    while ((letter = cli_option(cli, argc, argv, ":" CLI_COMMON_LETTERS, options_table, &status)) !=
           CLI_OPTION_END) {
        if (letter != CLI_OPTION_STOP)
            status = take_option(cli, &options, letter);
        if (letter == CLI_OPTION_STOP || status != EX_OK)
            return status;
    }
    if (optind >= argc)
        return cli_usage(cli, "what is to be done? Say list, show, retry or drop");
    options.ids = argv + optind + 1;
    options.id_count = (size_t)(argc - optind - 1);
    return run_action(cli, argv[optind], &options);
}

const struct subcommand dead_command = {"dead", "list, show, retry or drop dead letters", help,
                                        run};
