/*
 * Locating a task or a dead letter by its id or label.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/rows.h"
#include "cli/show/ended.h"
#include "cli/show/expand_id.h"
#include "cli/show/show.h"
#include "queue/calls.h"
#include "queue/entry_id.h"
#include "view/reply_fields.h"
#include "view/task_view.h"

#define CURSOR_SIZE 64
#define ANYWHERE ""
#define ALIVE "g0-0"
#define DEAD "d0-0"

/* Locates the task. One call does, unless older entries are still being indexed. Returns NULL with
 * *status 0 if there is no such task there. */
static struct redisReply *locate(struct cli *cli, const char *id, const char *where, int *status)
{
    bool only_alive = strcmp(where, ALIVE) == 0;
    struct command command = {0};
    struct redisReply *reply;
    char cursor[CURSOR_SIZE];

    *status = EX_OK;
    bytes_copy(bytes_of(where), cursor, sizeof cursor);
    do {
        queue_show(&command, &cli->queue, id, cursor);
        reply = cli_call(cli, &command, "cannot search for the task", 2, status);
        if (!reply || reply->elements >= TASK_VIEW_ELEMENTS) {
            break;
        }
        bytes_copy(fields_value(reply->element[1]), cursor, sizeof cursor);
        freeReplyObject(reply);
        reply = NULL;
    } while (*cursor && !(only_alive && *cursor == 'd'));
    return reply;
}

/* As locate, for what was typed. */
static struct redisReply *locate_typed(struct cli *cli, const char *typed, const char *where,
                                       int *status)
{
    struct expanded_id expanded;

    *status = expand_id(cli, typed, &expanded);
    return *status == EX_OK ? locate(cli, expanded.id, where, status) : NULL;
}

struct dead_letter dead_letter(const struct redisReply *row)
{
    struct dead_letter letter = {0};

    bytes_copy(fields_bytes(row, "dead_id"), letter.dead_id, sizeof letter.dead_id);
    bytes_copy(fields_bytes(row, "tid"), letter.tid, sizeof letter.tid);
    return letter;
}

struct redisReply *show_locate_letter(struct cli *cli, const struct dead_letter *letter,
                                      int *status)
{
    char cursor[CURSOR_SIZE] = "d";
    struct redisReply *reply;

    *status = EX_OK;
    if (!entry_before(letter->dead_id, cursor + 1, sizeof cursor - 1)) {
        return NULL;
    }
    reply = locate(cli, letter->tid, cursor, status);
    if (reply && bytes_equal(fields_bytes(reply->element[2], "dead_id"), letter->dead_id)) {
        return reply;
    }
    freeReplyObject(reply);
    return NULL;
}

/* ---- dead letters by their labels */

struct labelled {
    char *const *ids;
    size_t count;
    struct dead_letter *letters; /* one for each id; no tid: none yet, so the id may be a label */
    bool *found;
};

static bool note_labelled(void *context, const struct redisReply *row)
{
    struct labelled *labelled = context;

    for (size_t i = 0; i < labelled->count; i++) {
        if (!labelled->found[i] && bytes_equal(fields_bytes(row, "id"), labelled->ids[i])) {
            labelled->letters[i] = dead_letter(row);
        }
    }
    return true;
}

/* Labels of dead letters are not indexed, so one walk looks for all. */
static int locate_labelled(struct cli *cli, char *const *ids, size_t count,
                           struct dead_letter *letters)
{
    struct labelled labelled = {.ids = ids, .count = count, .letters = letters};
    size_t missing = count;
    int status;

    labelled.found = calloc(count + 1, sizeof *labelled.found);
    if (!labelled.found) {
        return cli_no_memory();
    }
    for (size_t i = 0; i < count; i++) {
        labelled.found[i] = *letters[i].tid;
        missing -= labelled.found[i];
    }
    status = missing > 0 ? rows_walk(cli, "dead", false, note_labelled, &labelled) : EX_OK;
    free(labelled.found);
    return status;
}

int show_locate_letters(struct cli *cli, char *const *ids, size_t count,
                        struct dead_letter *letters)
{
    for (size_t i = 0; i < count; i++) {
        int status;
        struct redisReply *reply = locate_typed(cli, ids[i], DEAD, &status);
        letters[i] = (struct dead_letter){0};
        if (reply) {
            letters[i] = dead_letter(reply->element[2]);
        }
        freeReplyObject(reply);
        if (status != EX_OK) {
            return status;
        }
    }
    return locate_labelled(cli, ids, count, letters);
}

struct redisReply *show_locate_labelled(struct cli *cli, const char *label, int *status)
{
    struct dead_letter letter = {0};

    *status = locate_labelled(cli, (char *const *)&label, 1, &letter);
    return *letter.tid && *status == EX_OK ? show_locate_letter(cli, &letter, status) : NULL;
}

/* ---- tasks */

struct redisReply *show_locate_live(struct cli *cli, const char *id, int *status)
{
    return locate(cli, id, ALIVE, status);
}

struct redisReply *show_locate_quietly(struct cli *cli, const char *id, int *status)
{
    return locate(cli, id, ANYWHERE, status);
}

struct redisReply *show_locate(struct cli *cli, const char *id, bool only_dead, int *status)
{
    struct redisReply *found = locate_typed(cli, id, only_dead ? DEAD : ANYWHERE, status);
    bool is_later = false;

    if (!found && *status == EX_OK) {
        found = show_locate_labelled(cli, id, status);
    }
    if (found && !only_dead) {
        *status = ended_is_later(cli, id, found->element[2], &is_later);
    }
    if (is_later || *status != EX_OK) {
        freeReplyObject(found);
        found = NULL;
    }
    return found;
}
