/*
 * Expands prefixes of ids. Redis searches all ids for it, page by page.
 */
#include "cli/show/expand_id.h"

#include <string.h>

#include <hiredis/hiredis.h>

#include "queue/calls.h"
#include "view/reply_fields.h"

#define CURSOR_SIZE 64
#define SHORTEST 6
#define LONGEST 13
#define SECONDS 10 /* digits of a time in seconds */

static bool is_number(const char *typed)
{
    return *typed && typed[strspn(typed, "0123456789")] == '\0';
}

static bool may_be_prefix(const char *typed)
{
    size_t digits = strlen(typed);

    return is_number(typed) && digits >= SHORTEST && digits <= LONGEST && digits != SECONDS;
}

const char *expand_id_hint(const char *typed)
{
    return is_number(typed) && !may_be_prefix(typed)
               ? "; the beginning of an id needs 6 to 13 digits, but not 10"
               : "";
}

/* Takes the ids of a page. Returns 0, or an exit status after printing the error. */
static int take_page(const struct redisReply *tids, const char *typed, char *tid, size_t size)
{
    for (size_t i = 0; i < tids->elements; i++) {
        struct bytes other = fields_value(tids->element[i]);
        if (!*tid) {
            bytes_copy(other, tid, size);
        } else if (!bytes_equal(other, tid)) {
            cli_error("%s: several ids begin so, such as %s and %.*s; give more digits", typed, tid,
                      (int)other.size, other.data);
            return EX_USAGE;
        }
    }
    return EX_OK;
}

int expand_id(struct cli *cli, const char *typed, struct expanded_id *expanded)
{
    struct command command = {0};
    char cursor[CURSOR_SIZE] = "";
    int status = EX_OK;
    bool more = may_be_prefix(typed);

    *expanded = (struct expanded_id){.id = typed};
    if (*typed == '\0') {
        return cli_usage(cli, "the id of a task is empty; give an id or a label");
    }
    while (more && status == EX_OK) {
        struct redisReply *reply;
        queue_match(&command, &cli->queue, typed, cursor);
        reply = cli_call(cli, &command, "cannot search for the task", 3, &status);
        if (reply) {
            status = take_page(reply->element[2], typed, expanded->tid, sizeof expanded->tid);
            bytes_copy(fields_value(reply->element[1]), cursor, sizeof cursor);
        }
        freeReplyObject(reply);
        more = *cursor;
    }
    if (*expanded->tid) {
        expanded->id = expanded->tid;
    }
    return status;
}
