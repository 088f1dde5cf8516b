/*
 * leat dead: selecting dead letters. Only letters that ids name are kept in memory; filters are
 * applied again, page by page, in each walk.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/dead/dead.h"
#include "cli/lib/reply_fields.h"
#include "cli/lib/rows.h"
#include "queue/calls.h"

struct dead_letter dead_letter(const struct redisReply *row)
{
    struct dead_letter letter = {0};

    bytes_copy(fields_bytes(row, "dead_id"), letter.dead_id, sizeof letter.dead_id);
    bytes_copy(fields_bytes(row, "tid"), letter.tid, sizeof letter.tid);
    return letter;
}

/* ---- filters */

/* Returns a control character that the pattern does not contain, or NUL if it contains all. */
static char unused_control(const char *glob)
{
    for (int c = 1; c < ' '; c++) {
        if (!strchr(glob, c)) {
            return (char)c;
        }
    }
    return '\0';
}

/* fnmatch stops at a NUL, so NULs of the command are replaced: what follows them must count. */
static bool glob_matches(const char *glob, struct bytes command)
{
    char instead = unused_control(glob), *text = malloc(command.size + 1);
    bool matches = text;

    for (size_t i = 0; i < command.size && matches; i++) {
        text[i] = command.data[i] ? command.data[i] : instead;
        matches = text[i] != '\0';
    }
    if (matches) {
        text[command.size] = '\0';
        matches = fnmatch(glob, text, 0) == 0;
    }
    free(text);
    return matches;
}

static bool passes(const struct dead_choice *choice, const struct redisReply *row)
{
    const struct dead_options *options = choice->options;
    int64_t age_ms = choice->now_ms - fields_number(row, "died_ms", 0);

    if (options->cause && !bytes_equal(fields_bytes(row, "cause"), options->cause)) {
        return false;
    }
    if (options->lane && !bytes_equal(fields_bytes(row, "lane"), options->lane)) {
        return false;
    }
    if (options->older_ms >= 0 && age_ms < options->older_ms) {
        return false;
    }
    if (options->newer_ms >= 0 && age_ms > options->newer_ms) {
        return false;
    }
    return !options->command || glob_matches(options->command, rows_command(row));
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

static bool is_named(const struct dead_choice *choice, const struct dead_letter *letter)
{
    return bsearch(letter, choice->named, choice->named_count, sizeof *letter, compare_letters);
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
    meant = choice->named ? is_named(choice, &letter) : passes(choice, row);
    walk->met += meant;
    progress_draw(&choice->progress, walk->met, walk->seen, (uint64_t)choice->total);
    return !meant || walk->visit(walk->context, row);
}

int dead_walk(struct dead_choice *choice, dead_visit *visit, void *context)
{
    struct walk walk = {.choice = choice, .visit = visit, .context = context};

    return rows_walk(choice->cli, "dead", choice->options->command, visit_row, &walk);
}

/* ---- ids */

/* If an id is that of a dead task, it means this task; or else the dead letter whose entry has it;
 * or else the newest dead letter with this label. */
struct named {
    const char *id;
    struct dead_letter by_task, by_entry, by_label; /* "" if there is none yet */
};

struct naming {
    struct named *list;
    size_t count, found; /* found: tasks */
};

static int compare_named(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->id, ((const struct named *)b)->id);
}

static struct named *find_named(const struct naming *naming, const char *id)
{
    struct named wanted = {.id = id};

    return bsearch(&wanted, naming->list, naming->count, sizeof wanted, compare_named);
}

static struct named *find_label(const struct naming *naming, struct bytes label)
{
    char *text = label.size > 0 ? strndup(label.data, label.size) : NULL;
    /* an argument has no NUL, so a label with one is not named */
    struct named *found = text && strlen(text) == label.size ? find_named(naming, text) : NULL;

    free(text);
    return found;
}

static bool note_named(void *context, const struct redisReply *row)
{
    struct naming *naming = context;
    struct dead_letter letter = dead_letter(row);
    struct named *by_task = find_named(naming, letter.tid);
    struct named *by_entry = find_named(naming, letter.dead_id);
    struct named *by_label = find_label(naming, fields_bytes(row, "id"));

    if (by_task && !*by_task->by_task.tid) {
        by_task->by_task = letter;
        naming->found++;
    }
    if (by_entry) {
        by_entry->by_entry = letter;
    }
    if (by_label) {
        by_label->by_label = letter;
    }
    return naming->found < naming->count;
}

/* Sorts the ids and drops duplicates. Returns 0, or an exit status after printing the error. */
static int sort_ids(const struct dead_options *options, struct naming *naming)
{
    naming->list = calloc(options->id_count, sizeof *naming->list);
    if (!naming->list) {
        return cli_no_memory();
    }
    for (size_t i = 0; i < options->id_count; i++) {
        naming->list[i].id = options->ids[i];
    }
    qsort(naming->list, options->id_count, sizeof *naming->list, compare_named);
    for (size_t i = 0; i < options->id_count; i++) {
        if (naming->count == 0 ||
            strcmp(naming->list[i].id, naming->list[naming->count - 1].id) != 0) {
            naming->list[naming->count++] = naming->list[i];
        }
    }
    return EX_OK;
}

/* Makes the list of letters, oldest first. Two ids may name the same letter. Returns 0, or an exit
 * status after printing the error. */
static int take_named(struct dead_choice *choice, const struct naming *naming)
{
    struct dead_letter *letters = calloc(naming->count + 1, sizeof *letters);
    size_t found = 0, count = 0;

    if (!letters) {
        return cli_no_memory();
    }
    for (size_t i = 0; i < naming->count; i++) {
        const struct named *named = &naming->list[i];
        const struct dead_letter *letter = *named->by_task.tid    ? &named->by_task
                                           : *named->by_entry.tid ? &named->by_entry
                                                                  : &named->by_label;
        if (*letter->tid) {
            letters[found++] = *letter;
            continue;
        }
        cli_error("no dead letter %s in queue %s; see leat dead list", named->id,
                  choice->cli->config->queue.name);
        choice->missing++;
    }
    qsort(letters, found, sizeof *letters, compare_letters);
    for (size_t i = 0; i < found; i++) {
        if (count == 0 || compare_letters(&letters[i], &letters[count - 1]) != 0) {
            letters[count++] = letters[i];
        }
    }
    choice->named = letters;
    choice->named_count = count;
    return EX_OK;
}

/* Letters have no index by task, so one walk looks for all ids. */
static int find_letters(struct dead_choice *choice)
{
    const struct dead_options all = {.older_ms = -1, .newer_ms = -1};
    struct dead_choice every = {.cli = choice->cli,
                                .options = &all,
                                .until = choice->until,
                                .total = choice->total,
                                .progress = choice->progress};
    struct naming naming = {0};
    int status = sort_ids(choice->options, &naming);

    status = status == EX_OK ? dead_walk(&every, note_named, &naming) : status;
    progress_end(&choice->progress);
    status = status == EX_OK ? take_named(choice, &naming) : status;
    free(naming.list);
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
        return cli_call_failed("cannot read the dead letters", error, why);
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
    status = status == EX_OK ? read_server(choice) : status;
    status = status == EX_OK ? read_last(choice) : status;
    if (status == EX_OK && options->id_count > 0) {
        status = find_letters(choice);
    }
    return status;
}

void dead_choice_free(struct dead_choice *choice)
{
    free(choice->named);
    choice->named = NULL;
}
