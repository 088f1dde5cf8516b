/*
 * leat list: lists tasks, state by state.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "cli/lib/row_filter.h"
#include "cli/lib/rows.h"
#include "cli/lib/table.h"
#include "cli/show/list_format.h"
#include "view/moment.h"
#include "view/reply_fields.h"
#include "view/shown.h"

#define DEFAULT_LIMIT 20
#define DEFAULT_SEARCH 100000

static const char help[] =
    "Usage: leat list [OPTION]...\n"
    "List tasks by state: running, ready, retrying, delayed and dead ones, or with\n"
    "--state done those that have ended, the last one first.\n"
    "LABEL is the label that a task was given, TRIES the number of counted attempts,\n"
    "with the one that runs. DETAIL is the worker, the time when the task is due, its\n"
    "lane, the cause of death, or its end. COMMAND also shows the task's fields,\n"
    "and after '<' the beginning of its payload. A narrow terminal has fewer columns.\n"
    "\n"
    "Filters; a task must match all of them:\n"
    "  --state STATE     only ready, running, delayed, retrying, dead or done ones\n"
    "  --lane NAME       it is in this lane; '' means no lane\n"
    "  --label GLOB      its label matches GLOB, such as 'order-*'\n"
    "  --worker GLOB     the name or the host of its worker matches GLOB\n"
    "  --command GLOB    its whole command matches GLOB, such as 'make *'\n"
    "  --cause CAUSE     it died of this cause; see leat dead --help\n"
    "  --older-than AGE  it was enqueued more than AGE ago, such as 2d\n"
    "  --newer-than AGE  it was enqueued less than AGE ago\n"
    "\n"
    "Options:\n"
    "  --limit N         list at most N tasks of each state (default: 20); 0: all\n"
    "  --search N        with filters: look at no more than N tasks of each state\n"
    "                    (default: 100000); 0 looks at all\n"
    "  --format TEXT     print TEXT for each task, with its members in braces, such\n"
    "                    as '{tid}\\t{command}'; leat-list(1) lists them\n"
    "  --json            print a JSON array of objects\n"
    "  -q, -c, -h        see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails list --state running\n"
    "  leat -q thumbnails list --lane archive --older-than 1h --format '{tid}'\n"
    "  leat -q thumbnails list --state done --command 'make *'\n"
    "  leat -q thumbnails list --limit 0 --json | jq -r '.[].tid'\n"
    "\n"
    "Exit codes:\n"
    "  0   success, also if there are no tasks\n"
    "  64  wrong usage\n" CLI_EXITS;

/* The order of the output. leat_list has delayed and retrying tasks in one list. The last one is
 * listed only if it is asked for. */
static const char *const states[] = {"running", "ready", "retrying", "delayed", "dead", "done"};
#define STATE_COUNT (sizeof states / sizeof *states)
#define LIVING_COUNT (STATE_COUNT - 1)

struct listing {
    const char *state; /* the state that is being listed */
    int64_t limit, shown, now_ms;
    int64_t search, seen; /* search 0: all */
    struct row_filter filter;
    const char *format; /* NULL: a table, or JSON */
    bool json, cut;
    bool told; /* that the search among delayed and retrying tasks has ended */
    int status;
    struct table table;
    struct rows_array array;
};

static bool follows(const struct redisReply *row)
{
    return bytes_equal(fields_bytes(row, "state"), "following");
}

/* A poison candidate that its worker has deferred until it can run alone. It counts as running. */
static bool is_held(const struct redisReply *row)
{
    return bytes_equal(fields_bytes(row, "state"), "held");
}

/* Adds the worker, the due time or the key of the task that it follows; and the lane. */
static void add_place(struct listing *listing, const struct redisReply *row)
{
    struct bytes worker = fields_bytes(row, "worker"), lane = fields_bytes(row, "lane");
    struct bytes unique = fields_bytes(row, "unique");
    const char *nonce = worker.size > 0 ? memrchr(worker.data, ':', worker.size) : NULL;
    struct buffer place = BUFFER_INIT;
    char due[MOMENT_SIZE];

    /* a failed append marks the buffer */
    if (worker.size > 0) {
        (void)buffer_append(&place, worker.data,
                            nonce ? (size_t)(nonce - worker.data) : worker.size);
    } else if (fields_number(row, "due_ms", 0) > 0) {
        moment_relative(fields_number(row, "due_ms", 0), listing->now_ms, due, sizeof due);
        (void)buffer_printf(&place, "due %s", due);
    } else if (follows(row)) {
        (void)buffer_append_text(&place, "follows ");
        (void)buffer_append(&place, unique.data, unique.size);
    }
    if (lane.size > 0) {
        (void)buffer_append_text(&place, place.size > 0 ? ", lane " : "lane ");
        (void)buffer_append(&place, lane.data, lane.size);
    }
    if (place.size == 0) {
        (void)buffer_append_text(&place, "-");
    }
    table_add(&listing->table, place.data, place.size);
    listing->table.failed |= place.failed;
    buffer_free(&place);
}

/* Adds when the task ended, and how long it took or the cause of its failure; and the lane. */
static void add_end(struct listing *listing, const struct redisReply *row)
{
    struct bytes lane = fields_bytes(row, "lane");
    int64_t took_us = fields_number(row, "duration_us", 0);
    char time[MOMENT_SIZE];
    struct buffer end = BUFFER_INIT;

    /* a failed append marks the buffer */
    moment_relative(fields_number(row, "ended_ms", 0), listing->now_ms, time, sizeof time);
    (void)buffer_append_text(&end, time);
    if (bytes_equal(fields_bytes(row, "outcome"), "dead")) {
        (void)buffer_append_text(&end, ", ");
        shown_append_cause(fields_bytes(row, "cause"), fields_bytes(row, "status"), &end);
    } else if (took_us > 0) {
        moment_span(took_us / 1000, time, sizeof time);
        (void)buffer_printf(&end, ", took %s", time);
    }
    if (lane.size > 0) {
        (void)buffer_append_text(&end, ", lane ");
        (void)buffer_append(&end, lane.data, lane.size);
    }
    table_add(&listing->table, end.data, end.size);
    listing->table.failed |= end.failed;
    buffer_free(&end);
}

static void add_detail(struct listing *listing, const struct redisReply *row)
{
    if (rows_is_ended(row)) {
        add_end(listing, row);
    } else if (strcmp(listing->state, "dead") == 0) {
        rows_add_cause(&listing->table, row);
    } else {
        add_place(listing, row);
    }
}

/* The state, or how the task ended. */
static void add_state(struct listing *listing, const struct redisReply *row)
{
    struct bytes state = bytes_of(is_held(row) ? "held" : listing->state);

    state = rows_is_ended(row) ? fields_bytes(row, "outcome") : state;
    table_add(&listing->table, state.data, state.size);
    if (bytes_equal(state, "dead")) {
        table_style(&listing->table, TEXT_RED);
    }
}

static void add_row(struct listing *listing, const struct redisReply *row)
{
    struct table *table = &listing->table;
    struct bytes tid = fields_bytes(row, "tid"), label = fields_bytes(row, "id");

    table_add(table, tid.data, tid.size);
    table_add(table, label.data, label.size);
    add_state(listing, row);
    rows_add_ago(table, fields_number(row, "enqueued_ms", 0), listing->now_ms);
    table_printf(table, "%lld", (long long)fields_number(row, "attempts", 0));
    add_detail(listing, row);
    rows_add_command(table, row);
}

static int print_line(const char *format, const struct redisReply *row)
{
    struct buffer line = BUFFER_INIT;
    int status;

    list_format_append(format, row, &line);
    status = output_write(&line);
    buffer_free(&line);
    return status;
}

/* Delayed and retrying tasks wait in one set, so a search for either looks at both. */
static bool is_waiting(const char *state)
{
    return strcmp(state, "delayed") == 0 || strcmp(state, "retrying") == 0;
}

static void say_where_the_search_ended(struct listing *listing)
{
    bool waiting = is_waiting(listing->state);

    if (!waiting || !listing->told) {
        cli_error("searched only the first %lld %s task%s; --search 0 searches all",
                  (long long)listing->search, waiting ? "delayed and retrying" : listing->state,
                  listing->search == 1 ? "" : "s");
    }
    listing->told |= waiting;
}

/* Whether the search may go on. It ends after a number of tasks, so that it costs Redis no more. */
static bool may_search(struct listing *listing)
{
    if (listing->search == 0 || !row_filter_is_set(&listing->filter)) {
        return true;
    }
    if (listing->seen++ == listing->search) {
        say_where_the_search_ended(listing);
    }
    return listing->seen <= listing->search;
}

static bool visit(void *context, const struct redisReply *row)
{
    struct listing *listing = context;

    if (!may_search(listing)) {
        return false;
    }
    if ((!bytes_equal(fields_bytes(row, "state"), listing->state) && !follows(row) &&
         !is_held(row)) ||
        !row_filter_passes(&listing->filter, row, "enqueued_ms", listing->now_ms)) {
        return true;
    }
    if (listing->limit > 0 && listing->shown == listing->limit) {
        listing->cut = true;
        return false;
    }
    listing->shown++;
    if (listing->json) {
        listing->status = rows_array_add(&listing->array, rows_json(row));
    } else if (listing->format) {
        listing->status = print_line(listing->format, row);
    } else {
        add_row(listing, row);
    }

    /* stop if the reader of the output has gone */
    return listing->status == EX_OK && !ferror(stdout);
}

/* Only tasks that have ended have a cause, and only what a worker has or had names one. */
static bool may_match(const struct row_filter *filter, const char *state)
{
    bool has_ended = strcmp(state, "dead") == 0 || strcmp(state, "done") == 0;
    bool is_running = strcmp(state, "running") == 0;

    return (!filter->cause || has_ended) && (!filter->worker || has_ended || is_running);
}

static int walk(struct cli *cli, struct listing *listing, const char *what)
{
    const char *lane = listing->filter.lane;
    bool whole = listing->filter.command || listing->format;

    return lane && *lane && strcmp(what, "ready") == 0
               ? rows_walk_lane(cli, lane, whole, visit, listing)
               : rows_walk(cli, what, whole, visit, listing);
}

static int walk_state(struct cli *cli, struct listing *listing, const char *state)
{
    bool delayed = strcmp(state, "delayed") == 0;
    int status;

    if (!may_match(&listing->filter, state)) {
        return EX_OK;
    }
    listing->state = state;
    listing->shown = listing->seen = 0;
    status = walk(cli, listing, is_waiting(state) ? "waiting" : state);
    /* tasks that follow another one are listed as delayed */
    if (delayed && status == EX_OK && listing->status == EX_OK) {
        status = walk(cli, listing, "following");
    }
    return status != EX_OK ? status : listing->status;
}

static int list(struct cli *cli, struct listing *listing, const char *state)
{
    int status = cli_connect(cli);

    for (size_t i = 0; i < STATE_COUNT && status == EX_OK; i++) {
        if (state ? strcmp(state, states[i]) == 0 : i < LIVING_COUNT) {
            status = walk_state(cli, listing, states[i]);
        }
    }
    if (status != EX_OK) {
        return status;
    }
    if (listing->format) {
        return EX_OK;
    }
    if (!listing->json) {
        return rows_print(&listing->table, "tasks", listing->cut ? listing->limit : 0, true);
    }
    rows_array_end(&listing->array);
    return EX_OK;
}

static int check_state(const struct cli *cli, const struct cli_option *option, const char *state)
{
    char hint[64];

    (void)option;
    for (size_t i = 0; i < STATE_COUNT; i++) {
        if (strcmp(state, states[i]) == 0) {
            return EX_OK;
        }
    }
    cli_suggest(state, states, STATE_COUNT, hint, sizeof hint);
    return cli_usage(cli,
                     "unknown state: %s;%s use ready, running, delayed, retrying, dead or done",
                     state, hint);
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct table_column columns[] = {
        {.title = "ID"},
        {.title = "LABEL", .flexible = true, .leave_out = 4, .optional = true},
        {.title = "STATE"},
        {.title = "AGE", .right = true, .leave_out = 2},
        {.title = "TRIES", .right = true, .leave_out = 1},
        {.title = "DETAIL", .flexible = true, .leave_out = 3},
        {.title = "COMMAND", .flexible = true},
    };
    struct listing listing = {
        .limit = DEFAULT_LIMIT,
        .search = DEFAULT_SEARCH,
        .filter = ROW_FILTER_ANY,
        .now_ms = clock_wall_ms(),
        .table = {.columns = columns, .column_count = sizeof columns / sizeof *columns},
    };
    const char *state = NULL;
    struct row_filter *filter = &listing.filter;
    const struct cli_option options[] = {
        {"--state", .text = &state, .take = check_state},
        {"--lane", .text = &filter->lane},
        {"--label", .text = &filter->label},
        {"--worker", .text = &filter->worker},
        {"--command", .text = &filter->command},
        {"--cause", .text = &filter->cause, .take = row_filter_check_cause},
        {"--older-than", .duration_ms = &filter->older_ms},
        {"--newer-than", .duration_ms = &filter->newer_ms},
        {"--limit", .number = &listing.limit},
        {"--search", .number = &listing.search},
        {"--format", .text = &listing.format, .take = list_format_check},
        {"--json", .flag = &listing.json},
        {0},
    };
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);

    if (status == EX_OK && listing.json && listing.format) {
        status = cli_usage(cli, "give --json or --format, not both");
    }
    if (status != EX_OK) {
        return status;
    }
    status = list(cli, &listing, state);
    table_free(&listing.table);
    return status;
}

const struct subcommand list_command = {"list", "List tasks by state", help, run};
