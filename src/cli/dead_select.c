/*
 * leat dead: choosing letters. All are chosen before any is touched, so that what happens
 * meanwhile, a retried task that dies again above all, changes nothing.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/dead.h"
#include "cli/record.h"
#include "cli/rows.h"
#include "cli/show.h"

bool dead_has_filter(const struct dead_options *options)
{
    return options->cause || options->matching || options->older_ms >= 0;
}

/* ---- filters */

struct walk {
    struct cli *cli;
    const struct dead_options *options;
    int64_t now_ms;
    dead_visit *visit;
    void *context;
    int status;
};

static bool glob_matches(const char *glob, struct bytes command)
{
    char *text = strndup(command.data, command.size);
    bool matches = text && fnmatch(glob, text, 0) == 0;

    free(text);
    return matches;
}

/* The whole command of a letter whose row has only its beginning. */
static bool whole_matches(struct walk *walk, const struct redisReply *row)
{
    struct bytes id = record_bytes(row, "tid");
    struct redisReply *reply;
    char tid[48];
    bool matches;

    bytes_copy(id, tid, sizeof tid);
    reply = show_find(walk->cli, tid, true, &walk->status);
    if (!reply)
        return false;
    matches = glob_matches(walk->options->matching, record_bytes(reply->element[3], "command"));
    freeReplyObject(reply);
    return matches;
}

static bool passes(struct walk *walk, const struct redisReply *row)
{
    const struct dead_options *options = walk->options;

    if (options->cause && !bytes_equal(record_bytes(row, "cause"), options->cause))
        return false;
    if (options->older_ms >= 0 &&
        record_number(row, "died_ms", 0) > walk->now_ms - options->older_ms)
        return false;
    if (!options->matching)
        return true;
    return rows_command_is_cut(row) ? whole_matches(walk, row)
                                    : glob_matches(options->matching, record_bytes(row, "command"));
}

static bool visit_row(void *context, const struct redisReply *row)
{
    struct walk *walk = context;
    bool passed = passes(walk, row);

    if (walk->status != EX_OK)
        return false;
    return !passed || walk->visit(walk->context, row);
}

/* Ages count on the server's clock, which wrote the times. */
static int server_now(struct cli *cli, int64_t *now_ms)
{
    struct command command = {0};
    struct redisReply *reply;
    int status;

    queue_status(&command, &cli->queue);
    reply = cli_call(cli, &command, "cannot read the time", 2, &status);
    command_free(&command);
    if (!reply)
        return status;
    *now_ms = record_integer(reply->element[1], 0);
    freeReplyObject(reply);
    return EX_OK;
}

int dead_walk(struct cli *cli, const struct dead_options *options, dead_visit *visit, void *context)
{
    struct walk walk = {.cli = cli, .options = options, .visit = visit, .context = context};
    int status = cli_connect(cli);

    if (status == EX_OK && options->older_ms >= 0)
        status = server_now(cli, &walk.now_ms);
    if (status == EX_OK)
        status = rows_walk(cli, "dead", visit_row, &walk);
    return status != EX_OK ? status : walk.status;
}

/* ---- letters */

static int add_letter(struct letters *letters, const struct redisReply *row)
{
    if (letters->count == letters->capacity) {
        size_t capacity = letters->capacity ? letters->capacity * 2 : 64;
        struct letter *items = reallocarray(letters->items, capacity, sizeof *items);
        if (!items)
            return -1;
        letters->items = items;
        letters->capacity = capacity;
    }
    bytes_copy(record_bytes(row, "dead_id"), letters->items[letters->count].dead_id,
               sizeof letters->items->dead_id);
    bytes_copy(record_bytes(row, "tid"), letters->items[letters->count].tid,
               sizeof letters->items->tid);
    letters->count++;
    return 0;
}

struct collection {
    struct letters *letters;
    int status;
};

static bool collect(void *context, const struct redisReply *row)
{
    struct collection *collection = context;

    if (add_letter(collection->letters, row) != 0)
        collection->status = cli_no_memory();
    return collection->status == EX_OK;
}

/* The letter that an id means: of the task with that id if there is one, else the entry's. */
static const struct letter *find_letter(const struct letters *letters, const char *id)
{
    const struct letter *found = NULL;

    for (size_t i = 0; i < letters->count; i++) {
        if (strcmp(letters->items[i].tid, id) == 0)
            return &letters->items[i];
        if (strcmp(letters->items[i].dead_id, id) == 0)
            found = &letters->items[i];
    }
    return found;
}

static int collect_all(struct cli *cli, const struct dead_options *options, struct letters *letters)
{
    struct collection collection = {.letters = letters};
    int status = dead_walk(cli, options, collect, &collection);

    return status != EX_OK ? status : collection.status;
}

int dead_select(struct cli *cli, const struct dead_options *options, struct letters *letters,
                size_t *missing)
{
    struct letters all = {0};
    int status;

    *missing = 0;
    if (options->id_count == 0)
        return collect_all(cli, options, letters);

    /* letters are not indexed by task: one walk serves all ids */
    letters->items = calloc(options->id_count, sizeof *letters->items);
    if (!letters->items)
        return cli_no_memory();
    status = collect_all(cli, options, &all);
    for (size_t i = 0; i < options->id_count && status == EX_OK; i++) {
        const struct letter *found = find_letter(&all, options->ids[i]);
        if (found) {
            letters->items[letters->count++] = *found;
        } else {
            cli_error("no dead letter %s in the queue %s", options->ids[i],
                      cli->config->queue.name);
            ++*missing;
        }
    }
    free(all.items);
    return status;
}
