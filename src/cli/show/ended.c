/*
 * Finds ended tasks in the history.
 */
#include "cli/show/ended.h"

#include <stdlib.h>
#include <string.h>

#include "cli/show/expand_id.h"
#include "queue/entry_id.h"
#include "view/reply_fields.h"

#define ENDED_EXPANDED 1000

struct search {
    const char *id;
    bool is_tid, is_label; /* it may be one, and for a short id either */
    bool take_dead;        /* there is no later end of the task */
    int64_t died_ms;       /* the last time when it became a dead letter; 0: never */
    rows_visit *visit;
    void *context;
    bool *found;
};

/* A dead letter may have been retried since, and the task has ended again. */
static bool look(void *context, const struct redisReply *row)
{
    struct search *search = context;
    bool is_meant = (search->is_tid && bytes_equal(fields_bytes(row, "tid"), search->id)) ||
                    (search->is_label && bytes_equal(fields_bytes(row, "id"), search->id));

    if (!is_meant) {
        return true;
    }
    if (!search->take_dead && bytes_equal(fields_bytes(row, "outcome"), "dead")) {
        search->died_ms = fields_number(row, "ended_ms", 0);
        return true;
    }
    *search->found = true;
    (void)search->visit(search->context, row);
    return false;
}

/* By a whole id or a label. */
static int find_named(struct cli *cli, const char *id, rows_visit *visit, void *context,
                      bool *found)
{
    struct search search = {.id = id,
                            .is_tid = entry_is_task(id),
                            .is_label = entry_may_be_label(id),
                            .visit = visit,
                            .context = context,
                            .found = found};
    int status;

    *found = false;
    if (search.is_label) {
        search.take_dead = true; /* the newest end comes first */
        return rows_walk(cli, "done", false, look, &search);
    }
    status = rows_walk_ended(cli, strtoll(id, NULL, 10), look, &search);
    if (status != EX_OK || *found) {
        return status;
    }
    search.take_dead = true;
    if (search.died_ms > 0) {
        return rows_walk_ended(cli, search.died_ms, look, &search);
    }
    /* the time in its id may be ahead of the clock: its producer chose it, or the server changed */
    return rows_walk(cli, "done", false, look, &search);
}

/* ---- prefixes */

struct expansion {
    const char *typed;
    struct expanded_id *expanded;
    size_t seen;
    int status;
};

static bool note_prefix(void *context, const struct redisReply *row)
{
    struct expansion *expansion = context;
    struct bytes tid = fields_bytes(row, "tid");
    size_t size = strlen(expansion->typed);

    if (expansion->seen++ == ENDED_EXPANDED) {
        return false;
    }
    if (tid.size > size && memcmp(tid.data, expansion->typed, size) == 0) {
        expansion->status = expand_id_take(expansion->typed, tid, expansion->expanded);
    }
    return expansion->status == EX_OK;
}

/* Expands the id if it is the prefix of exactly one among the ENDED_EXPANDED tasks that ended last;
 * see expand_id. */
static int expand_ended(struct cli *cli, const char *typed, struct expanded_id *expanded)
{
    struct expansion expansion = {.typed = typed, .expanded = expanded, .status = EX_OK};
    int status = EX_OK;

    *expanded = (struct expanded_id){.id = typed};
    if (expand_id_is_prefix(typed)) {
        status = rows_walk(cli, "done", false, note_prefix, &expansion);
    }
    return status != EX_OK ? status : expansion.status;
}

int ended_find(struct cli *cli, const char *id, rows_visit *visit, void *context, bool *found)
{
    struct expanded_id expanded = {0};
    int status = find_named(cli, id, visit, context, found);

    if (status == EX_OK && !*found) {
        status = expand_ended(cli, id, &expanded);
    }
    if (status == EX_OK && *expanded.tid) {
        status = find_named(cli, expanded.tid, visit, context, found);
    }
    return status;
}

/* ---- dead letters by their labels */

struct later {
    int64_t died_ms;
    bool is_later;
};

static bool note_later(void *context, const struct redisReply *row)
{
    struct later *later = context;

    later->is_later = !bytes_equal(fields_bytes(row, "outcome"), "dead") &&
                      fields_number(row, "ended_ms", 0) >= later->died_ms;
    return false;
}

int ended_is_later(struct cli *cli, const char *name, const struct redisReply *row, bool *is_later)
{
    struct later later = {.died_ms = fields_number(row, "died_ms", 0)};
    bool found;
    int status = EX_OK;

    if (bytes_equal(fields_bytes(row, "state"), "dead") &&
        bytes_equal(fields_bytes(row, "id"), name)) {
        status = find_named(cli, name, note_later, &later, &found);
    }
    *is_later = later.is_later;
    return status;
}
