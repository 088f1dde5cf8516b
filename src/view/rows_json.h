/*
 * Rows of leat_list as JSON.
 */
#ifndef LEAT_VIEW_ROWS_JSON_H
#define LEAT_VIEW_ROWS_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "base/bytes.h"

struct redisReply;

/* The whole command if the row has it, or else its preview. */
struct bytes rows_command(const struct redisReply *row);

/* Whether the row is an ended task of the history. */
bool rows_is_ended(const struct redisReply *row);

/* The row as JSON, with command_cut if it has only a preview of the command. A row without
 * whole_command does not tell whether a command of QUEUE_PREVIEW bytes was cut, so that gets
 * command_cut too. Returns NULL without memory. */
json_t *rows_json(const struct redisReply *row);

#endif
