/*
 * leat report: sums up the tasks that have ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "cli/lib/rows.h"
#include "cli/lib/table.h"
#include "cli/lib/text.h"
#include "cli/show/report_sum.h"
#include "view/moment.h"
#include "view/reply_fields.h"
#include "view/usage.h"

#define DAY_MS INT64_C(86400000)
#define GROUPS_SHOWN 20
#define MOVED "moved to " /* as in changes.lua */

static const char help[] =
    "Usage: leat report [OPTION]...\n"
    "Sum up the tasks that have ended, as far as the history of the queue has them:\n"
    "counts, causes of failures, and percentiles (P50, P95) and maxima of how long\n"
    "tasks waited and took, and of the CPU time and the memory that they used.\n"
    "\n"
    "Options:\n"
    "  --since AGE  only tasks that ended less than AGE ago (default: 24h)\n"
    "  --by WHAT    also sum up by command, lane or worker, which is its host\n"
    "  --json       print JSON\n"
    "  -q, -c, -h   see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails report --since 1h\n"
    "  leat -q thumbnails report --by command\n"
    "\n"
    "Exit codes:\n"
    "  0   success, also if no task has ended\n"
    "  64  wrong usage\n" CLI_EXITS;

enum by { BY_NOTHING, BY_COMMAND, BY_LANE, BY_WORKER };
static const char *const by_names[] = {"", "command", "lane", "worker"};
static const char *const by_titles[] = {"", "COMMAND", "LANE", "HOST"};
#define BY_COUNT (sizeof by_names / sizeof *by_names)

struct asked {
    int64_t since_ms; /* an age */
    enum by by;
    bool json;
    int64_t now_ms;
    struct report_tasks report;
    int status;
};

/* ---- reading */

/* A worker is HOST:PID:NONCE. */
static struct bytes host_of(struct bytes worker)
{
    for (int parts = 0; parts < 2 && worker.size > 0; parts++) {
        const char *colon = memrchr(worker.data, ':', worker.size);
        worker.size = colon ? (size_t)(colon - worker.data) : worker.size;
    }
    return worker;
}

static struct bytes group_of(enum by by, const struct redisReply *row)
{
    switch (by) {
    case BY_COMMAND:
        return fields_bytes(row, "command");
    case BY_LANE:
        return fields_bytes(row, "lane");
    case BY_WORKER:
        return host_of(fields_bytes(row, "worker"));
    case BY_NOTHING:
        break;
    }
    return bytes_of("");
}

/* A task that went to another queue goes on there. The history of its former queue has it as
 * cancelled, and is the only one that gives a reason for that. */
static bool is_moved(const struct redisReply *row)
{
    struct bytes reason = fields_bytes(row, "reason");
    size_t size = strlen(MOVED);

    return bytes_equal(fields_bytes(row, "outcome"), "cancelled") && reason.size >= size &&
           memcmp(reason.data, MOVED, size) == 0;
}

static bool visit(void *context, const struct redisReply *row)
{
    struct asked *asked = context;

    if (!is_moved(row) && report_sum_add(&asked->report, row, group_of(asked->by, row)) != 0) {
        asked->status = cli_no_memory();
    }
    return asked->status == EX_OK;
}

/* ---- for people */

static void format_value(enum report_value value, int64_t number, char *text, size_t size)
{
    if (value == REPORT_MEMORY) {
        usage_format_size(number, text, size);
    } else if (number > 0 && number < 1000) {
        (void)snprintf(text, size, "<1ms");
    } else {
        moment_span(number / 1000, text, size);
    }
}

static void add_value(struct table *table, enum report_value value, bool is_known, int64_t number)
{
    char text[MOMENT_SIZE] = "-";

    if (is_known) {
        format_value(value, number, text, sizeof text);
    }
    table_printf(table, "%s", text);
}

static int render(struct table *table, struct buffer *page, size_t indent)
{
    struct output output = output_look();
    int result = table_render(table, page, indent, output.width, output.color);

    table_free(table);
    return result;
}

static int add_spreads(const struct report_sum *sum, struct buffer *page)
{
    static const struct table_column columns[] = {{.title = ""},
                                                  {.title = "P50", .right = true},
                                                  {.title = "P95", .right = true},
                                                  {.title = "MAX", .right = true}};
    static const char *const titles[] = {[REPORT_WAITING] = "waited",
                                         [REPORT_DURATION] = "took",
                                         [REPORT_CPU] = "CPU time",
                                         [REPORT_MEMORY] = "memory"};
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof *columns};

    for (size_t i = 0; i < REPORT_VALUES; i++) {
        const struct report_spread *spread = &sum->spreads[i];
        enum report_value value = (enum report_value)i;
        table_printf(&table, "%s", titles[i]);
        add_value(&table, value, spread->count > 0, spread->p50);
        add_value(&table, value, spread->count > 0, spread->p95);
        add_value(&table, value, spread->count > 0, spread->most);
    }
    return render(&table, page, 0);
}

static int add_causes(const struct report_sum *sum, struct buffer *page)
{
    static const struct table_column columns[] = {{.title = "FAILURE", .flexible = true},
                                                  {.title = "TASKS", .right = true}};
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof *columns};

    if (sum->cause_count == 0) {
        return 0;
    }
    for (size_t i = 0; i < sum->cause_count; i++) {
        table_add(&table, sum->causes[i].name.data, sum->causes[i].name.size);
        table_printf(&table, "%zu", sum->causes[i].count);
    }
    return render(&table, page, 0);
}

static int add_groups(enum by by, const struct report_sum *sums, size_t count, struct buffer *page)
{
    const struct table_column columns[] = {
        {.title = by_titles[by], .flexible = true},
        {.title = "ENDED", .right = true},
        {.title = "DEAD", .right = true},
        {.title = "WAIT P95", .right = true, .leave_out = 3},
        {.title = "TOOK P50", .right = true, .leave_out = 4},
        {.title = "P95", .right = true},
        {.title = "MAX", .right = true, .leave_out = 5},
        {.title = "CPU P95", .right = true, .leave_out = 2},
        {.title = "MEM P95", .right = true, .leave_out = 1},
    };
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof *columns};

    for (size_t i = 0; i < count && i < GROUPS_SHOWN; i++) {
        const struct report_sum *sum = &sums[i];
        const struct report_spread *took = &sum->spreads[REPORT_DURATION];
        struct bytes name = sum->name.size > 0 ? sum->name : bytes_of("-");
        table_add(&table, name.data, name.size);
        table_printf(&table, "%zu", sum->ended);
        table_printf(&table, "%zu", sum->outcomes[REPORT_DEAD]);
        add_value(&table, REPORT_WAITING, sum->spreads[REPORT_WAITING].count > 0,
                  sum->spreads[REPORT_WAITING].p95);
        add_value(&table, REPORT_DURATION, took->count > 0, took->p50);
        add_value(&table, REPORT_DURATION, took->count > 0, took->p95);
        add_value(&table, REPORT_DURATION, took->count > 0, took->most);
        add_value(&table, REPORT_CPU, sum->spreads[REPORT_CPU].count > 0,
                  sum->spreads[REPORT_CPU].p95);
        add_value(&table, REPORT_MEMORY, sum->spreads[REPORT_MEMORY].count > 0,
                  sum->spreads[REPORT_MEMORY].p95);
    }
    if (render(&table, page, 0) != 0) {
        return -1;
    }
    return count > GROUPS_SHOWN
               ? buffer_printf(page, "... and %zu others; --json has all\n", count - GROUPS_SHOWN)
               : 0;
}

/* "812 tasks ended in the last 1d, the first 3h12m ago: 790 succeeded, 20 died, 2 cancelled" */
static void add_title(const struct asked *asked, const struct report_sum *total,
                      struct buffer *page)
{
    char since[MOMENT_SIZE], first[MOMENT_SIZE];

    moment_span(asked->since_ms, since, sizeof since);
    moment_relative(asked->report.first_ms, asked->now_ms, first, sizeof first);
    /* a failed append marks the buffer */
    if (total->ended == 0) {
        (void)buffer_printf(page, "no task of the history ended in the last %s\n", since);
        return;
    }
    (void)buffer_printf(page, "%zu task%s ended in the last %s, the first %s: %zu succeeded, ",
                        total->ended, total->ended == 1 ? "" : "s", since, first,
                        total->outcomes[REPORT_SUCCEEDED]);
    (void)buffer_printf(page, "%zu died, %zu cancelled; %lld attempt%s retried\n",
                        total->outcomes[REPORT_DEAD], total->outcomes[REPORT_CANCELLED],
                        (long long)total->retries, total->retries == 1 ? " was" : "s were");
}

static int print_text(const struct asked *asked, const struct report_sum *total,
                      const struct report_sum *sums, size_t count)
{
    struct buffer page = BUFFER_INIT;
    int status;

    add_title(asked, total, &page);
    (void)text_wrap(&page, 0, output_look().width);
    if (total->ended > 0 &&
        (add_spreads(total, &page) != 0 || add_causes(total, &page) != 0 ||
         (asked->by != BY_NOTHING && add_groups(asked->by, sums, count, &page) != 0))) {
        page.failed = true;
    }
    status = output_write(&page);
    buffer_free(&page);
    return status;
}

/* ---- as JSON */

static json_t *spread_json(const struct report_spread *spread)
{
    json_t *object = json_pack("{s:I}", "count", (json_int_t)spread->count);

    if (spread->count > 0) {
        output_put(&object, "p50", json_integer(spread->p50));
        output_put(&object, "p95", json_integer(spread->p95));
        output_put(&object, "max", json_integer(spread->most));
    }
    return object;
}

static json_t *sum_json(const struct report_sum *sum, const char *name)
{
    static const char *const names[] = {[REPORT_WAITING] = "waiting_us",
                                        [REPORT_DURATION] = "duration_us",
                                        [REPORT_CPU] = "cpu_us",
                                        [REPORT_MEMORY] = "memory_bytes"};
    json_t *object = json_object(), *causes = json_array();

    if (name) {
        output_put_bytes(&object, name, sum->name);
    }
    output_put(&object, "ended", json_integer((json_int_t)sum->ended));
    output_put(&object, "succeeded", json_integer((json_int_t)sum->outcomes[REPORT_SUCCEEDED]));
    output_put(&object, "dead", json_integer((json_int_t)sum->outcomes[REPORT_DEAD]));
    output_put(&object, "cancelled", json_integer((json_int_t)sum->outcomes[REPORT_CANCELLED]));
    output_put(&object, "retries", json_integer(sum->retries));
    for (size_t i = 0; i < sum->cause_count; i++) {
        json_t *cause = json_pack("{s:I}", "tasks", (json_int_t)sum->causes[i].count);
        output_put_bytes(&cause, "cause", sum->causes[i].name);
        output_push(&causes, cause);
    }
    output_put(&object, "failures", causes);
    for (size_t i = 0; i < REPORT_VALUES; i++) {
        output_put(&object, names[i], spread_json(&sum->spreads[i]));
    }
    return object;
}

static int print_json(const struct cli *cli, const struct asked *asked,
                      const struct report_sum *total, const struct report_sum *sums, size_t count)
{
    json_t *object = json_object(), *groups = json_array();

    output_put_bytes(&object, "queue", bytes_of(cli->config->queue.name));
    output_put(&object, "now_ms", json_integer(asked->now_ms));
    output_put(&object, "since_ms", json_integer(asked->now_ms - asked->since_ms));
    if (asked->report.count > 0) {
        output_put(&object, "first_ms", json_integer(asked->report.first_ms));
    }
    output_put(&object, "all", sum_json(total, NULL));
    for (size_t i = 0; i < count; i++) {
        output_push(&groups,
                    sum_json(&sums[i], asked->by == BY_WORKER ? "host" : by_names[asked->by]));
    }
    if (asked->by == BY_NOTHING) {
        json_decref(groups);
    } else {
        output_put(&object, "groups", groups);
    }
    return output_json(object, true);
}

/* ---- the command */

static int print(const struct cli *cli, struct asked *asked)
{
    struct report_sum total = {0}, *sums = NULL;
    size_t count = 0;
    int status;

    if (report_sum_total(&asked->report, &total) != 0 ||
        (asked->by != BY_NOTHING && report_sum_groups(&asked->report, &sums, &count) != 0)) {
        status = cli_no_memory();
    } else if (asked->json) {
        status = print_json(cli, asked, &total, sums, count);
    } else {
        status = print_text(asked, &total, sums, count);
    }
    report_sum_free(sums, count);
    free(total.causes);
    return status;
}

static int take_by(const struct cli *cli, const struct cli_option *option, const char *value)
{
    struct asked *asked = option->context;
    char hint[64];

    for (size_t i = 1; i < BY_COUNT; i++) {
        if (strcmp(value, by_names[i]) == 0) {
            asked->by = (enum by)i;
            return EX_OK;
        }
    }
    cli_suggest(value, by_names + 1, BY_COUNT - 1, hint, sizeof hint);
    return cli_usage(cli, "--by: cannot sum up by %s;%s use command, lane or worker", value, hint);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct asked asked = {.since_ms = DAY_MS, .now_ms = clock_wall_ms()};
    const struct cli_option options[] = {
        {"--since", .duration_ms = &asked.since_ms},
        {"--by", .take = take_by, .context = &asked},
        {"--json", .flag = &asked.json},
        {0},
    };
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);

    if (status == EX_OK) {
        status = cli_connect(cli);
    }
    if (status == EX_OK) {
        int64_t since_ms = asked.now_ms > asked.since_ms ? asked.now_ms - asked.since_ms : 0;
        status = rows_walk_ended(cli, since_ms, visit, &asked);
        status = status == EX_OK ? asked.status : status;
    }
    status = status == EX_OK ? print(cli, &asked) : status;
    report_tasks_free(&asked.report);
    return status;
}

const struct subcommand report_command = {"report", "Sum up the tasks that have ended", help, run};
