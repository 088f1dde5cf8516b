/*
 * leat list --format: a line for each task, in the form that the user gives.
 */
#ifndef LEAT_CLI_SHOW_LIST_FORMAT_H
#define LEAT_CLI_SHOW_LIST_FORMAT_H

#include "base/buffer.h"
#include "cli/lib/cli.h"

struct redisReply;

/* Checks a form: text with members of a row in braces, "{tid}\\t{command}". For an option. */
cli_take list_format_check;

/* Appends the row in a form that was checked, and a newline. A failed append marks the buffer. */
void list_format_append(const char *form, const struct redisReply *row, struct buffer *line);

#endif
