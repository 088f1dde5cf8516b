/*
 * leat dead list and leat dead show.
 */
#include <stdio.h>

#include "cli/dead/dead.h"
#include "cli/lib/rows.h"
#include "queue/shared/limits.h"
#include "view/reply_fields.h"

/* ---- a table of letters */

static const struct table_column columns[] = {
    {.title = "ID"},
    {.title = "LABEL", .flexible = true, .leave_out = 4, .optional = true},
    {.title = "DIED", .right = true, .leave_out = 3},
    {.title = "CAUSE"},
    {.title = "TRIES", .right = true, .leave_out = 1},
    {.title = "COMMAND", .flexible = true},
    {.title = "REASON", .flexible = true, .leave_out = 2},
};

bool dead_table_add(struct dead_table *dead, const struct redisReply *row)
{
    struct table *table = &dead->table;
    struct bytes tid = fields_bytes(row, "tid"), reason = fields_bytes(row, "reason");
    struct bytes label = fields_bytes(row, "id");

    table->columns = columns;
    table->column_count = sizeof columns / sizeof *columns;
    if (dead->limit > 0 && table_rows(table) == (size_t)dead->limit) {
        dead->cut = true;
        return false;
    }
    table_add(table, tid.data, tid.size);
    table_add(table, label.data, label.size);
    rows_add_ago(table, fields_number(row, "died_ms", 0), dead->now_ms);
    rows_add_cause(table, row);
    table_printf(table, "%lld", (long long)fields_number(row, "attempts", 0));
    rows_add_command(table, row);
    table_add(table, reason.data, bytes_whole(reason.data, reason.size, QUEUE_PREVIEW));
    return true;
}

int dead_table_print(const struct dead_table *dead)
{
    return rows_print(&dead->table, "dead letters", dead->cut ? dead->limit : 0, false);
}

void dead_table_free(struct dead_table *dead)
{
    table_free(&dead->table);
}

/* ---- the list */

struct listing {
    const struct dead_options *options;
    int64_t shown; /* as JSON */
    int status;
    struct dead_table table;
    struct rows_array array;
};

static bool list_row(void *context, const struct redisReply *row)
{
    struct listing *listing = context;
    int64_t limit = listing->options->limit;

    if (!listing->options->json) {
        return dead_table_add(&listing->table, row);
    }
    if (limit > 0 && listing->shown++ == limit) {
        return false;
    }
    listing->status = rows_array_add(&listing->array, rows_json(row));
    /* stop if the reader of the output has gone */
    return listing->status == EX_OK && !ferror(stdout);
}

static int list_choice(struct dead_choice *choice)
{
    const struct dead_options *options = choice->options;
    struct listing listing = {.options = options,
                              .table = {.limit = options->limit, .now_ms = choice->now_ms}};
    int status = dead_walk(choice, list_row, &listing);

    status = status == EX_OK ? listing.status : status;
    if (status == EX_OK && options->json) {
        rows_array_end(&listing.array);
    } else if (status == EX_OK) {
        status = dead_table_print(&listing.table);
    }
    dead_table_free(&listing.table);
    return status;
}

int dead_list(struct cli *cli, const struct dead_options *options)
{
    struct dead_choice choice = {0};
    int status = dead_choose(cli, options, &choice);

    status = status == EX_OK ? list_choice(&choice) : status;
    dead_choice_free(&choice);
    return status == EX_OK && choice.missing > 0 ? SHOW_NOT_FOUND : status;
}

/* ---- showing several */

struct showing {
    const struct dead_choice *choice;
    size_t shown;
    int status;
    struct rows_array array;
};

static bool show_row(void *context, const struct redisReply *row)
{
    struct showing *showing = context;
    bool json = showing->choice->options->json;
    struct dead_letter letter = dead_letter(row);

    /* cli_flush reports failures */
    if (!json && showing->shown++ > 0) {
        (void)puts("");
    }
    showing->status = show_letter(showing->choice->cli, &letter, json ? &showing->array : NULL);
    /* the letter may be gone since its row was read */
    if (showing->status == SHOW_NOT_FOUND) {
        showing->status = EX_OK;
    }
    return showing->status == EX_OK && !ferror(stdout);
}

static int show_choice(struct dead_choice *choice)
{
    struct showing showing = {.choice = choice};
    int status = dead_walk(choice, show_row, &showing);

    status = status == EX_OK ? showing.status : status;
    if (status == EX_OK && choice->options->json) {
        rows_array_end(&showing.array);
    } else if (status == EX_OK && showing.shown == 0 && choice->missing == 0) {
        (void)puts("no dead letters");
    }
    return status;
}

int dead_show(struct cli *cli, const struct dead_options *options)
{
    struct show_options one = {
        .json = options->json, .payload = options->payload, .only_dead = true};
    struct dead_choice choice = {0};
    int status;

    if (options->id_count == 1) {
        return show_task(cli, options->ids[0], &one);
    }
    if (options->payload) {
        return cli_usage(cli, "--payload needs exactly one id");
    }
    status = dead_choose(cli, options, &choice);
    status = status == EX_OK ? show_choice(&choice) : status;
    dead_choice_free(&choice);
    return status == EX_OK && choice.missing > 0 ? SHOW_NOT_FOUND : status;
}
