/*
 * The cells of the lists of leat top: members of JSON objects, as people read them.
 */
#ifndef LEAT_CLI_TOP_CELLS_H
#define LEAT_CLI_TOP_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "cli/lib/table.h"

/* How the value of a member is shown. */
enum cell_format {
    CELL_TEXT,
    CELL_ID,   /* of a task */
    CELL_LANE, /* of tasks; empty: of those without one that wait like one */
    CELL_NUMBER,
    CELL_RATE, /* a real number per second */
    CELL_SPAN, /* ms */
    CELL_SPAN_US,
    CELL_SINCE, /* for how long, from a Unix time */
    CELL_DUE,   /* until a Unix time */
    CELL_HOST,  /* of a worker's name, HOST:PID:NONCE */
    CELL_BUSY,  /* of a worker's slots */
    CELL_STATE, /* of a queue or a task */
    CELL_ALIVE, /* the state of a worker */
    CELL_CAUSE, /* of a dead letter */
    CELL_END,   /* of an ended task */
    CELL_WHAT,  /* the task runs: command, fields, payload */
};

struct cell_field {
    struct table_column column;
    const char *member;
    enum cell_format format;
};

/* The number of a member; 0 if there is none. */
int64_t cells_number(const json_t *row, const char *name);

/* Add a cell to the table: the member of the field, or the bytes of a member. narrow: without the
 * middle of a long id, and of an end without "dead: ". */
void cells_add(struct table *table, const json_t *row, const struct cell_field *field,
               int64_t now_ms, bool narrow);
void cells_add_bytes(struct table *table, const json_t *row, const char *member);

#endif
