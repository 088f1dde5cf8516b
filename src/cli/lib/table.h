/*
 * A table of text for a terminal. Columns are as wide as their content; if a line would be wider
 * than the terminal, dispensable columns are left out, and flexible ones are cut.
 */
#ifndef LEAT_CLI_LIB_TABLE_H
#define LEAT_CLI_LIB_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "cli/lib/text.h"

struct table_column {
    const char *title;
    int leave_out; /* 0: never; the columns with the lowest numbers are left out first */
    bool right;    /* aligned to the right, for numbers */
    bool flexible; /* may be cut */
    bool optional; /* left out if all its cells are empty */
};

struct table_cell {
    size_t start, size, width; /* its text within table.text */
    enum text_style style;
    bool spans; /* the cell takes the rest of its line */
};

/* A table is empty if only its columns are set. */
struct table {
    const struct table_column *columns;
    size_t column_count;
    struct buffer text;
    struct table_cell *cells;
    size_t cell_count;
    bool failed;
};

/* Add the next cell, row by row from the left. The bytes are escaped and copied. */
void table_add(struct table *table, const void *data, size_t size);
void table_printf(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the style of the last cell that was added. */
void table_style(struct table *table, enum text_style style);

/* Lets the last cell that was added take the rest of its line. Its column and those before it are
 * always shown. */
void table_span(struct table *table);

size_t table_rows(const struct table *table);

/* Appends the titles and all rows, each line indented by `indent` blanks. width 0: no limit.
 * Returns 0, or -1 if there was no memory, now or in an earlier call. */
int table_render(const struct table *table, struct buffer *out, size_t indent, size_t width,
                 bool color);

void table_free(struct table *table);

#endif
