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

bool expand_id_is_prefix(const char *typed)
{
    size_t digits = strlen(typed);

    return is_number(typed) && digits >= SHORTEST && digits <= LONGEST && digits != SECONDS;
}

const char *expand_id_hint(const char *typed)
{
    return is_number(typed) && !expand_id_is_prefix(typed)
               ? "; the beginning of an id needs 6 to 13 digits, but not 10"
               : "";
}

int expand_id_take(const char *typed, struct bytes tid, struct expanded_id *expanded)
{
    if (!*expanded->tid) {
        bytes_copy(tid, expanded->tid, sizeof expanded->tid);
        expanded->id = expanded->tid;
    } else if (!bytes_equal(tid, expanded->tid)) {
        cli_error("%s: several ids begin so, such as %s and %.*s; give more digits", typed,
                  expanded->tid, (int)tid.size, tid.data);
        return EX_USAGE;
    }
    return EX_OK;
}

int expand_id(struct cli *cli, const char *typed, struct expanded_id *expanded)
{
    struct command command = {0};
    char cursor[CURSOR_SIZE] = "";
    int status = EX_OK;
    bool more = expand_id_is_prefix(typed);

    *expanded = (struct expanded_id){.id = typed};
    if (*typed == '\0') {
        return cli_usage(cli, "the id of a task is empty; give an id or a label");
    }
    while (more && status == EX_OK) {
        struct redisReply *reply;
        queue_match(&command, &cli->queue, typed, cursor);
        reply = cli_call(cli, &command, "cannot search for the task", 3, &status);
        if (reply) {
            const struct redisReply *tids = reply->element[2];
            for (size_t i = 0; i < tids->elements && status == EX_OK; i++) {
                status = expand_id_take(typed, fields_value(tids->element[i]), expanded);
            }
            bytes_copy(fields_value(reply->element[1]), cursor, sizeof cursor);
        }
        freeReplyObject(reply);
        more = *cursor;
    }
    return status;
}
