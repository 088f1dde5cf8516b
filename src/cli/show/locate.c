/*
 * Locating a task or a dead letter by its id or label.
 */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/entry_id.h"
#include "cli/lib/reply_fields.h"
#include "cli/lib/rows.h"
#include "cli/show/show.h"
#include "queue/calls.h"

#define CURSOR_SIZE 64
#define FOUND_ELEMENTS 5

/* Searches from the cursor until the task is found; with only_live, stops before the dead letters.
 * Returns NULL with *status 0 if there is no such task. */
static struct redisReply *search(struct cli *cli, const char *id, const char *from, bool only_live,
                                 int *status)
{
    struct command command = {0};
    struct redisReply *reply;
    char cursor[CURSOR_SIZE];

    bytes_copy(bytes_of(from), cursor, sizeof cursor);
    do {
        queue_show(&command, &cli->queue, id, cursor);
        reply = cli_call(cli, &command, "cannot search for the task", 2, status);
        if (!reply || reply->elements >= FOUND_ELEMENTS) {
            break;
        }
        bytes_copy(fields_value(reply->element[1]), cursor, sizeof cursor);
        freeReplyObject(reply);
        reply = NULL;
    } while (*cursor && !(only_live && *cursor == 'd'));
    return reply;
}

static struct redisReply *follow(struct cli *cli, const char *id, const char *from, int *status)
{
    return search(cli, id, from, false, status);
}

/* True if this is the id of the task itself, not that of its dead letter's entry or its label. */
static bool is_own(const struct redisReply *reply, const char *id)
{
    return bytes_equal(fields_bytes(reply->element[2], "tid"), id);
}

/* Returns the reply if it is about the task with that id, or else frees it and returns NULL. */
static struct redisReply *only_own(struct redisReply *reply, const char *id)
{
    if (!reply || is_own(reply, id)) {
        return reply;
    }
    freeReplyObject(reply);
    return NULL;
}

struct redisReply *show_locate_letter(struct cli *cli, const char *dead_id, const char *tid,
                                      int *status)
{
    char before[CURSOR_SIZE - 1], cursor[CURSOR_SIZE];
    struct redisReply *reply;

    *status = EX_OK;
    if (!entry_before(dead_id, before, sizeof before)) {
        return NULL;
    }
    (void)snprintf(cursor, sizeof cursor, "d%s", before);
    reply = only_own(follow(cli, tid, cursor, status), tid);
    if (reply && bytes_equal(fields_bytes(reply->element[2], "dead_id"), dead_id)) {
        return reply;
    }
    freeReplyObject(reply);
    return NULL;
}

/* Locates the dead letter whose entry has that id. */
static struct redisReply *find_letter(struct cli *cli, const char *id, int *status)
{
    struct command command = {0};
    struct redisReply *reply, *found = NULL;
    const struct redisReply *rows;
    char before[CURSOR_SIZE - 1], tid[CURSOR_SIZE];

    if (!entry_before(id, before, sizeof before)) {
        return NULL;
    }
    queue_list(&command, &cli->queue, "dead", before, 1, false);
    reply = cli_call(cli, &command, "cannot search for the dead letter", 3, status);
    if (!reply) {
        return NULL;
    }
    rows = reply->element[2];
    if (rows->elements > 0 && bytes_equal(fields_bytes(rows->element[0], "dead_id"), id)) {
        bytes_copy(fields_bytes(rows->element[0], "tid"), tid, sizeof tid);
        found = show_locate_letter(cli, id, tid, status);
    }
    freeReplyObject(reply);
    return found;
}

/* The id of a dead letter's entry may also be the id of another task. The task is preferred. */
static struct redisReply *find(struct cli *cli, const char *id, int *status)
{
    struct redisReply *first = follow(cli, id, "", status), *own = NULL;

    if (first && !is_own(first, id) &&
        bytes_equal(fields_bytes(first->element[2], "dead_id"), id)) {
        own = only_own(follow(cli, id, "g0-0", status), id);
    }
    if (own || *status != EX_OK) {
        freeReplyObject(first);
        return own;
    }
    return first;
}

struct labelled {
    const char *label;
    char dead_id[CURSOR_SIZE - 1], tid[CURSOR_SIZE]; /* "" if there is none yet */
};

static bool note_labelled(void *context, const struct redisReply *row)
{
    struct labelled *labelled = context;

    if (bytes_equal(fields_bytes(row, "id"), labelled->label)) {
        bytes_copy(fields_bytes(row, "dead_id"), labelled->dead_id, sizeof labelled->dead_id);
        bytes_copy(fields_bytes(row, "tid"), labelled->tid, sizeof labelled->tid);
    }
    return true;
}

/* Locates the newest dead letter with that label. */
static struct redisReply *find_labelled(struct cli *cli, const char *label, int *status)
{
    struct labelled labelled = {.label = label};

    *status = rows_walk(cli, "dead", false, note_labelled, &labelled);
    if (*status != EX_OK || !*labelled.tid) {
        return NULL;
    }
    return show_locate_letter(cli, labelled.dead_id, labelled.tid, status);
}

static struct redisReply *find_dead(struct cli *cli, const char *id, int *status)
{
    struct redisReply *found = only_own(follow(cli, id, "d0-0", status), id);

    if (!found && *status == EX_OK) {
        found = find_letter(cli, id, status);
    }
    if (!found && *status == EX_OK) {
        found = find_labelled(cli, id, status);
    }
    return found;
}

static bool is_live(const struct redisReply *reply)
{
    return !bytes_equal(fields_bytes(reply->element[2], "state"), "dead");
}

struct redisReply *show_locate_live(struct cli *cli, const char *id, int *status)
{
    struct redisReply *found;

    *status = EX_OK;
    found = search(cli, id, "", true, status);
    if (!found || is_live(found)) {
        return found;
    }
    /* this is a dead letter whose entry has that id */
    freeReplyObject(found);
    return search(cli, id, "g0-0", true, status);
}

struct redisReply *show_locate_quietly(struct cli *cli, const char *id, int *status)
{
    *status = EX_OK;
    return find(cli, id, status);
}

struct redisReply *show_locate(struct cli *cli, const char *id, bool only_dead, int *status)
{
    struct redisReply *found;

    *status = EX_OK;
    found = only_dead ? find_dead(cli, id, status) : find(cli, id, status);
    if (!found && !only_dead && *status == EX_OK) {
        found = find_labelled(cli, id, status);
    }
    if (!found && *status == EX_OK) {
        cli_error("no %s %s in queue %s; see leat %s", only_dead ? "dead letter" : "task", id,
                  cli->config->queue.name, only_dead ? "dead list" : "list");
        *status = SHOW_NOT_FOUND;
    }
    return found;
}
