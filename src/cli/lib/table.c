/*
 * A table of text for a terminal.
 */
#include "cli/lib/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define GAP 2       /* blanks between columns */
#define NARROWEST 8 /* width that a flexible column keeps */
#define READABLE 10 /* other columns are left out before a flexible one is cut to less */
#define COLUMNS_MAX 16

void table_add(struct table *table, const void *data, size_t size)
{
    struct table_cell *cell;
    size_t start = table->text.size;

    cell = array_grow(table->cells, table->cell_count, sizeof *cell);
    if (!cell) {
        table->failed = true;
        return;
    }
    table->cells = cell;
    if (text_append(&table->text, data, size) != 0) {
        table->failed = true;
    }
    cell = &table->cells[table->cell_count++];
    cell->start = start;
    cell->size = table->text.size - start;
    cell->width = cell->size > 0 ? text_width(table->text.data + start, cell->size) : 0;
    cell->style = TEXT_PLAIN;
    cell->spans = false;
}

void table_printf(struct table *table, const char *format, ...)
{
    char text[256];
    va_list args;

    /* a longer text is cut; free text is added with table_add */
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_add(table, text, strlen(text));
}

void table_style(struct table *table, enum text_style style)
{
    if (table->cell_count > 0) {
        table->cells[table->cell_count - 1].style = style;
    }
}

void table_span(struct table *table)
{
    if (table->cell_count == 0) {
        return;
    }
    table->cells[table->cell_count - 1].spans = true;
    while (!table->failed && table->cell_count % table->column_count != 0) {
        table_add(table, "", 0);
    }
}

size_t table_rows(const struct table *table)
{
    return table->column_count > 0 ? table->cell_count / table->column_count : 0;
}

/* How a table is laid out: the widths of its columns, and which are shown. */
struct layout {
    size_t widths[COLUMNS_MAX];
    bool shown[COLUMNS_MAX];
    size_t room;
};

static bool is_empty(const struct table *table, size_t column)
{
    for (size_t i = column; i < table->cell_count; i += table->column_count) {
        if (table->cells[i].size > 0) {
            return false;
        }
    }
    return true;
}

static void set_natural_widths(const struct table *table, struct layout *layout)
{
    for (size_t i = 0; i < table->column_count; i++) {
        layout->widths[i] = strlen(table->columns[i].title);
        layout->shown[i] = !table->columns[i].optional || !is_empty(table, i);
        for (size_t j = i; j < table->cell_count; j += table->column_count) {
            const struct table_cell *cell = &table->cells[j];
            if (!cell->spans && cell->width > layout->widths[i]) {
                layout->widths[i] = cell->width;
            }
        }
    }
}

/* The width of a line whose flexible columns have no more than `most`. */
static size_t total_width(const struct table *table, const struct layout *layout, size_t most)
{
    size_t total = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        bool cut = table->columns[i].flexible && layout->widths[i] > most;
        if (layout->shown[i]) {
            total += (total > 0 ? GAP : 0) + (cut ? most : layout->widths[i]);
        }
    }
    return total;
}

/* Leaves out one column. Returns false if no other can be. */
static bool leave_one_out(const struct table *table, struct layout *layout)
{
    size_t first = SIZE_MAX;

    for (size_t i = 0; i < table->column_count; i++) {
        int rank = table->columns[i].leave_out;
        if (layout->shown[i] && rank > 0 &&
            (first == SIZE_MAX || rank < table->columns[first].leave_out)) {
            first = i;
        }
    }
    if (first == SIZE_MAX) {
        return false;
    }
    layout->shown[first] = false;
    return true;
}

/* Narrows the widest flexible column until the line fits or no column can be cut any further. */
static void cut_columns(const struct table *table, struct layout *layout)
{
    size_t *widths = layout->widths, total = total_width(table, layout, SIZE_MAX), widest;

    while (total > layout->room) {
        widest = SIZE_MAX;
        for (size_t i = 0; i < table->column_count; i++) {
            if (layout->shown[i] && table->columns[i].flexible && widths[i] > NARROWEST &&
                (widest == SIZE_MAX || widths[i] > widths[widest])) {
                widest = i;
            }
        }
        if (widest == SIZE_MAX) {
            return;
        }
        widths[widest]--;
        total--;
    }
}

static struct layout lay_out(const struct table *table, size_t room)
{
    struct layout layout = {.room = room};

    set_natural_widths(table, &layout);
    while (total_width(table, &layout, READABLE) > room && leave_one_out(table, &layout)) {
    }
    cut_columns(table, &layout);
    return layout;
}

/* Renders a cell in its column. The last cell of a line is not padded. */
static void render_cell(struct buffer *out, const char *text, size_t size, size_t columns,
                        size_t width, bool right, bool last)
{
    static const char dots[] = "...";
    bool cut = columns > width;

    /* a failed append marks the buffer, which is checked at the end */
    if (cut) {
        size = text_fit(text, size, width > 3 ? width - 3 : 0);
        columns = text_width(text, size) + 3;
    }
    if (right && columns < width) {
        (void)buffer_printf(out, "%*s", (int)(width - columns), "");
    }
    (void)buffer_append(out, text, size);
    if (cut) {
        (void)buffer_append_text(out, dots);
    }
    if (!right && !last && columns < width) {
        (void)buffer_printf(out, "%*s", (int)(width - columns), "");
    }
}

/* The width of a cell that begins after `used` columns: a spanning cell may fill the line. */
static size_t width_of(const struct table_cell *cell, size_t column_width, size_t used, size_t room)
{
    if (!cell->spans) {
        return column_width;
    }
    return room - used < cell->width ? room - used : cell->width;
}

/* A line has no blanks after its last cell that is not empty. */
static void render_row(const struct table *table, size_t row, const struct layout *layout,
                       struct buffer *out, size_t indent, bool color)
{
    const struct table_cell *cells = &table->cells[row * table->column_count];
    size_t count = table->column_count, used = 0;

    while (count > 0 && (cells[count - 1].size == 0 || !layout->shown[count - 1])) {
        count--;
    }
    /* a failed append marks the buffer, which is checked at the end */
    (void)buffer_printf(out, "%*s", (int)indent, "");
    for (size_t i = 0; i < count; i++) {
        const struct table_cell *cell = &cells[i];
        bool styled = color && cell->style != TEXT_PLAIN, last = i + 1 == count;
        size_t width = width_of(cell, layout->widths[i], used < layout->room ? used : layout->room,
                                layout->room);
        if (!layout->shown[i]) {
            continue;
        }
        if (styled) {
            (void)text_style(out, cell->style, true);
        }
        render_cell(out, cell->size > 0 ? table->text.data + cell->start : "", cell->size,
                    cell->width, width, table->columns[i].right && !cell->spans, last);
        if (styled) {
            (void)text_style(out, TEXT_PLAIN, true);
        }
        if (!last) {
            (void)buffer_printf(out, "%*s", GAP, "");
        }
        used += width + GAP;
    }
    (void)buffer_append_text(out, "\n");
}

static void render_titles(const struct table *table, const struct layout *layout,
                          struct buffer *out, size_t indent, bool color)
{
    size_t count = table->column_count;

    while (count > 0 && !layout->shown[count - 1]) {
        count--;
    }
    /* a failed append marks the buffer, which is checked at the end */
    (void)buffer_printf(out, "%*s", (int)indent, "");
    (void)text_style(out, TEXT_BOLD, color);
    for (size_t i = 0; i < count; i++) {
        const char *title = table->columns[i].title;
        bool last = i + 1 == count;
        if (!layout->shown[i]) {
            continue;
        }
        render_cell(out, title, strlen(title), strlen(title), layout->widths[i],
                    table->columns[i].right, last);
        if (!last) {
            (void)buffer_printf(out, "%*s", GAP, "");
        }
    }
    (void)text_style(out, TEXT_PLAIN, color);
    (void)buffer_append_text(out, "\n");
}

int table_render(const struct table *table, struct buffer *out, size_t indent, size_t width,
                 bool color)
{
    struct layout layout;

    if (table->failed || table->column_count > COLUMNS_MAX) {
        return -1;
    }
    layout = lay_out(table, width == 0 ? SIZE_MAX : width > indent ? width - indent : 0);
    render_titles(table, &layout, out, indent, color);
    for (size_t row = 0; row < table_rows(table); row++) {
        render_row(table, row, &layout, out, indent, color);
    }
    return out->failed ? -1 : 0;
}

void table_free(struct table *table)
{
    buffer_free(&table->text);
    free(table->cells);
    table->cells = NULL;
    table->cell_count = 0;
}
