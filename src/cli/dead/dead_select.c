/*
 * leat dead: selecting dead letters. Only letters that ids name are kept in memory; filters are
 * applied again, page by page, in each walk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/dead/dead.h"
#include "cli/lib/rows.h"
#include "queue/calls.h"
#include "view/reply_fields.h"

static bool passes(const struct dead_choice *choice, const struct redisReply *row)
{
    return row_filter_passes(&choice->options->filter, row, "died_ms", choice->now_ms);
}

/* ---- walking */

struct walk {
    struct dead_choice *choice;
    dead_visit *visit;
    void *context;
    uint64_t seen, met;
};

static int compare_letters(const void *a, const void *b)
{
    struct entry_id x = {0}, y = {0};

    /* both ids come from Redis */
    (void)entry_parse(((const struct dead_letter *)a)->dead_id, &x);
    (void)entry_parse(((const struct dead_letter *)b)->dead_id, &y);
    return entry_compare(&x, &y);
}

static bool visit_row(void *context, const struct redisReply *row)
{
    struct walk *walk = context;
    struct dead_choice *choice = walk->choice;
    struct dead_letter letter = dead_letter(row);
    struct entry_id id;
    bool meant;

    if (!entry_parse(letter.dead_id, &id) || entry_compare(&id, &choice->until) > 0) {
        return false;
    }
    walk->seen++;
    meant = passes(choice, row);
    walk->met += meant;
    progress_draw(&choice->progress, walk->met, walk->seen, (uint64_t)choice->total);
    return !meant || walk->visit(walk->context, row);
}

/* Visits the row of a letter that was named, unless the letter is gone. Returns 0, or an exit
 * status after printing the error. */
static int visit_named(struct dead_choice *choice, const struct dead_letter *letter,
                       dead_visit *visit, void *context, bool *more)
{
    struct command command = {0};
    struct redisReply *reply;
    const struct redisReply *rows;
    char before[48];
    int status;

    if (!entry_before(letter->dead_id, before, sizeof before)) {
        return EX_OK; /* no entry has such an id */
    }
    queue_list(&command, &choice->cli->queue, "dead", before, 1, false);
    reply = cli_call(choice->cli, &command, "cannot read the dead letter", 3, &status);
    if (!reply) {
        return status;
    }
    rows = reply->element[2];
    if (rows->elements > 0 &&
        bytes_equal(fields_bytes(rows->element[0], "dead_id"), letter->dead_id)) {
        *more = visit(context, rows->element[0]);
    }
    freeReplyObject(reply);
    return EX_OK;
}

int dead_walk(struct dead_choice *choice, dead_visit *visit, void *context)
{
    struct walk walk = {.choice = choice, .visit = visit, .context = context};
    bool more = true;
    int status = EX_OK;

    if (!choice->named) {
        return rows_walk(choice->cli, "dead", choice->options->filter.command, visit_row, &walk);
    }
    for (size_t i = 0; i < choice->named_count && more && status == EX_OK; i++) {
        status = visit_named(choice, &choice->named[i], visit, context, &more);
    }
    return status;
}

/* ---- ids */

/* Keeps the letters that were found, oldest first. Two ids may name the same letter. */
static void keep_named(struct dead_choice *choice)
{
    const struct dead_options *options = choice->options;
    struct dead_letter *letters = choice->named;
    size_t found = 0;

    for (size_t i = 0; i < options->id_count; i++) {
        if (*letters[i].tid) {
            letters[found++] = letters[i];
            continue;
        }
        cli_error("no dead letter %s in queue %s; see leat dead list", options->ids[i],
                  choice->cli->config->queue.name);
        choice->missing++;
    }
    qsort(letters, found, sizeof *letters, compare_letters);
    for (size_t i = 0; i < found; i++) {
        if (i == 0 || compare_letters(&letters[i], &letters[choice->named_count - 1]) != 0) {
            letters[choice->named_count++] = letters[i];
        }
    }
}

static int find_letters(struct dead_choice *choice)
{
    const struct dead_options *options = choice->options;
    int status;

    choice->named = calloc(options->id_count, sizeof *choice->named);
    if (!choice->named) {
        return cli_no_memory();
    }
    status = show_locate_letters(choice->cli, options->ids, options->id_count, choice->named);
    if (status == EX_OK) {
        keep_named(choice);
    }
    return status;
}

/* ---- the selection */

/* Fetches the time, since ages are relative to the server's clock, and the number of letters. */
static int read_server(struct dead_choice *choice)
{
    struct command command = {0};
    struct redisReply *reply;
    int status;

    queue_status(&command, &choice->cli->queue);
    reply = cli_call(choice->cli, &command, "cannot read the time", 3, &status);
    if (!reply) {
        return status;
    }
    choice->now_ms = fields_integer(reply->element[1], 0);
    choice->total = fields_number(reply->element[2], "dead", 0);
    freeReplyObject(reply);
    return EX_OK;
}

static int read_last(struct dead_choice *choice)
{
    struct command command = {0};
    enum redis_error error = REDIS_ERROR_OTHER;
    struct redisReply *reply;
    char why[256] = "", id[48];

    queue_dead_last(&command, &choice->cli->queue);
    reply = client_call(choice->cli->client, &command, &error, why, sizeof why);
    command_free(&command);
    if (!reply) {
        return cli_call_failed(choice->cli, "cannot read the dead letters", error, why);
    }
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
        reply->element[0]->type == REDIS_REPLY_ARRAY && reply->element[0]->elements > 0) {
        bytes_copy(fields_value(reply->element[0]->element[0]), id, sizeof id);
        /* if this is not an id, `until` stays 0-0 and no letter is selected */
        (void)entry_parse(id, &choice->until);
    }
    freeReplyObject(reply);
    return EX_OK;
}

int dead_choose(struct cli *cli, const struct dead_options *options, struct dead_choice *choice)
{
    int status = cli_connect(cli);

    choice->cli = cli;
    choice->options = options;
    choice->now_ms = clock_wall_ms();
    if (status == EX_OK && options->id_count > 0) {
        return find_letters(choice);
    }
    status = status == EX_OK ? read_server(choice) : status;
    return status == EX_OK ? read_last(choice) : status;
}

void dead_choice_free(struct dead_choice *choice)
{
    free(choice->named);
    choice->named = NULL;
}
