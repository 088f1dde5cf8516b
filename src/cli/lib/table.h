/*
 * A table of text for a terminal: columns as wide as their content; where a line would be longer
 * than the terminal is wide, the columns that may give way are cut.
 */
#ifndef LEAT_CLI_LIB_TABLE_H
#define LEAT_CLI_LIB_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "cli/lib/text.h"

struct table_column {
    const char *title;
    bool right;    /* aligned so: numbers */
    bool flexible; /* may be cut to fit */
};

struct table_cell {
    size_t start, size, width; /* its text within table.text */
    enum text_style style;
    bool spans; /* it takes the rest of its line */
};

/* Zeroed but for the columns, it is an empty table. */
struct table {
    const struct table_column *columns;
    size_t column_count;
    struct buffer text;
    struct table_cell *cells;
    size_t cell_count, cell_capacity;
    bool failed;
};

/* The next cell, row by row from the left; the bytes are escaped and copied. */
void table_add(struct table *table, const void *data, size_t size);
void table_printf(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Of the cell added last. */
void table_style(struct table *table, enum text_style style);

/* Lets the cell added last take the rest of its line, cut where the line is full. */
void table_span(struct table *table);

size_t table_rows(const struct table *table);

/* The width that the table cannot be cut below. */
size_t table_least_width(const struct table *table);

/* Appends the titles and all rows, each line indented by that many blanks. width 0: as wide as it
 * gets. Returns 0, or -1 without memory, now or at an earlier call. */
int table_render(const struct table *table, struct buffer *out, size_t indent, size_t width,
                 bool color);

void table_free(struct table *table);

#endif
