/*
 * The terminal of leat top, by ncurses, which is used nowhere else.
 */
#ifndef LEAT_CLI_TOP_SCREEN_H
#define LEAT_CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct screen;

/* Keys that are no bytes. */
enum screen_key {
    SCREEN_NO_KEY = -1,
    SCREEN_UP = 0x1000,
    SCREEN_DOWN,
    SCREEN_LEFT,
    SCREEN_RIGHT,
    SCREEN_PAGE_UP,
    SCREEN_PAGE_DOWN,
    SCREEN_HOME,
    SCREEN_END,
    SCREEN_BACKSPACE,
    SCREEN_OTHER,
};
#define SCREEN_ESCAPE 27

/* Takes over the terminal of stdin and stdout. Returns NULL with the reason; the terminal is then
 * as it was. */
struct screen *screen_new(bool color, char *why, size_t why_size);

/* Restores the terminal. NULL does nothing. */
void screen_free(struct screen *screen);

/* Call it after the terminal was resized, and before it is drawn the next time. */
void screen_resize(struct screen *screen, size_t rows, size_t columns);

/* Forgets what the terminal shows, so that all of it is drawn again. */
void screen_repaint(struct screen *screen);

/* screen_clear, screen_line for each line, and screen_show draw a picture. The text may have styles
 * of text_style, and nothing else that controls a terminal. It is cut to the width. */
void screen_clear(struct screen *screen);
void screen_line(struct screen *screen, size_t row, struct bytes text, bool selected);
void screen_show(struct screen *screen);

/* The next key: a byte of text, or an enum screen_key. */
int screen_key(struct screen *screen);

#endif
