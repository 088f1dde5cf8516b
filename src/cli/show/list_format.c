/*
 * Forms of leat list --format.
 */
#include "cli/show/list_format.h"

#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/rows.h"
#include "cli/lib/text.h"
#include "view/reply_fields.h"

static const char *const names[] = {
    "tid",           "id",      "state",    "lane",      "unique",      "command",
    "attempts",      "crashes", "worker",   "attempt",   "cause",       "status",
    "reason",        "dead_id", "due_ms",   "begun_ms",  "died_ms",     "enqueued_ms",
    "payload_bytes", "outcome", "ended_ms", "waited_ms", "duration_us", "usage"};
#define NAME_COUNT (sizeof names / sizeof *names)

/* A piece of a form: a member of the row, or one character. */
struct piece {
    struct bytes member; /* data NULL: none */
    char character;
    size_t size; /* of its text in the form; 0: a brace is not closed */
};

static struct piece next_piece(const char *form)
{
    const char *end = *form == '{' ? strchr(form, '}') : NULL;

    if (form[0] == '{' && form[1] == '{') {
        return (struct piece){.character = '{', .size = 2};
    }
    if (form[0] == '{') {
        struct bytes member = {form + 1, end ? (size_t)(end - form) - 1 : 0};
        return (struct piece){.member = member, .size = end ? member.size + 2 : 0};
    }
    if (form[0] == '\\' && form[1] && strchr("tn\\", form[1])) {
        char character = form[1] == 't' ? '\t' : form[1] == 'n' ? '\n' : '\\';
        return (struct piece){.character = character, .size = 2};
    }
    return (struct piece){.character = form[0], .size = 1};
}

int list_format_check(const struct cli *cli, const struct cli_option *option, const char *form)
{
    char name[64], hint[64];

    while (*form) {
        struct piece piece = next_piece(form);
        bool is_known = !piece.member.data;
        if (piece.size == 0) {
            return cli_usage(cli, "%s: a brace is not closed: %s", option->name, form);
        }
        for (size_t i = 0; i < NAME_COUNT && !is_known; i++) {
            is_known = bytes_equal(piece.member, names[i]);
        }
        if (!is_known) {
            bytes_copy(piece.member, name, sizeof name);
            cli_suggest(name, names, NAME_COUNT, hint, sizeof hint);
            return cli_usage(cli, "%s: unknown member {%s};%s use those of leat-list(1)",
                             option->name, name, hint);
        }
        form += piece.size;
    }
    return EX_OK;
}

/* Appends a member. A row without it appends nothing. */
static void append_member(struct buffer *line, const struct redisReply *row, struct bytes member)
{
    char name[64];
    const struct redisReply *value;
    struct bytes text;

    bytes_copy(member, name, sizeof name);
    value = fields_find(row, name);
    if (value && value->type == REDIS_REPLY_INTEGER) {
        (void)buffer_printf(line, "%lld", value->integer);
        return;
    }
    text = strcmp(name, "command") == 0 ? rows_command(row) : fields_value(value);
    (void)text_append(line, text.data, text.size);
}

void list_format_append(const char *form, const struct redisReply *row, struct buffer *line)
{
    /* a failed append marks the buffer */
    while (*form) {
        struct piece piece = next_piece(form);
        if (piece.member.data) {
            append_member(line, row, piece.member);
        } else {
            (void)buffer_append(line, &piece.character, 1);
        }
        form += piece.size;
    }
    (void)buffer_append_text(line, "\n");
}
