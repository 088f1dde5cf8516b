/*
 * Draws leat top.
 */
#ifndef LEAT_CLI_TOP_DRAW_H
#define LEAT_CLI_TOP_DRAW_H

#include "cli/top/state.h"

#define DRAW_LEAST_COLUMNS 60
#define DRAW_LEAST_ROWS 10

/* Reads the rows again and draws the whole screen. */
void draw(struct top *top);

/* How many rows a key moves that turns a page. */
size_t draw_page_rows(const struct top *top);

#endif
