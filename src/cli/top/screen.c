/*
 * The terminal of leat top, by ncurses.
 */
#include "cli/top/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NCURSES_NOMACROS
#include <ncurses.h>

#include "cli/lib/text.h"
#include "cli/top/libncursesw.h"

#define ESCAPE_MS 100 /* how long the rest of a key's sequence may take after an escape */

struct screen {
    SCREEN *terminal;
    WINDOW *window;
    size_t columns;
    bool color;
};

/* Pairs of colours, by the codes of text_style. */
enum { RED = 1, GREEN, YELLOW };

static bool set_up_colors(void)
{
    return has_colors() && start_color() == OK && use_default_colors() == OK &&
           init_pair(RED, COLOR_RED, -1) == OK && init_pair(GREEN, COLOR_GREEN, -1) == OK &&
           init_pair(YELLOW, COLOR_YELLOW, -1) == OK;
}

static int take_over(struct screen *screen)
{
    screen->window = newwin(0, 0, 0, 0);
    if (!screen->window || cbreak() != OK || noecho() != OK) {
        return -1;
    }
    /* a terminal that cannot do one of these is still usable */
    (void)set_escdelay(ESCAPE_MS);
    (void)curs_set(0);
    (void)keypad(screen->window, true);
    (void)nodelay(screen->window, true);
    screen->color = screen->color && set_up_colors();
    return 0;
}

struct screen *screen_new(bool color, char *why, size_t why_size)
{
    struct screen *screen = calloc(1, sizeof *screen);
    const char *type = getenv("TERM");

    (void)snprintf(why, why_size, "out of memory");
    if (!screen) {
        return NULL;
    }
    screen->color = color;
    text_use_locale();
    if (!type || !*type || !libncursesw_can_move()) {
        (void)snprintf(why, why_size,
                       "TERM=%s is unknown or cannot move its cursor, or libncursesw.so.6 is not "
                       "installed",
                       type ? type : "");
    } else {
        screen->terminal = newterm(NULL, stdout, stdin);
        if (screen->terminal && take_over(screen) == 0) {
            return screen;
        }
    }
    screen_free(screen);
    return NULL;
}

void screen_free(struct screen *screen)
{
    if (!screen) {
        return;
    }
    /* what fails here cannot be helped */
    if (screen->window) {
        (void)delwin(screen->window);
    }
    if (screen->terminal) {
        (void)endwin();
        delscreen(screen->terminal);
    }
    free(screen);
}

void screen_resize(struct screen *screen, size_t rows, size_t columns)
{
    screen->columns = columns;
    /* without memory the window keeps its size */
    (void)resize_term((int)rows, (int)columns);
    (void)wresize(screen->window, (int)rows, (int)columns);
}

void screen_repaint(struct screen *screen)
{
    (void)clearok(screen->window, true);
}

/* ---- drawing: a failure shows in the picture, and the next one may be whole */

void screen_clear(struct screen *screen)
{
    (void)werase(screen->window);
}

static void set_style(const struct screen *screen, attr_t attributes, short pair)
{
    (void)wattr_set(screen->window, attributes, screen->color ? pair : (short)0, NULL);
}

/* Applies a code of text_style; -1: none. */
static void apply(const struct screen *screen, int code, bool selected)
{
    attr_t base = selected ? A_REVERSE : A_NORMAL;

    switch (code) {
    case 1:
        set_style(screen, base | A_BOLD, 0);
        break;
    case 2:
        set_style(screen, selected ? base : A_DIM, 0);
        break;
    case 31:
        set_style(screen, base, RED);
        break;
    case 32:
        set_style(screen, base, GREEN);
        break;
    case 33:
        set_style(screen, base, YELLOW);
        break;
    default:
        set_style(screen, base, 0);
        break;
    }
}

/* Adds text without styles. Returns the columns that it fills. */
static size_t add_plain(const struct screen *screen, const char *text, size_t size, size_t room)
{
    size_t shown = text_fit(text, size, room);

    (void)waddnstr(screen->window, text, (int)shown);
    return text_width(text, shown);
}

void screen_line(struct screen *screen, size_t row, struct bytes text, bool selected)
{
    const char *at = text.data, *end = at + text.size, *style;
    size_t room = screen->columns;

    (void)wmove(screen->window, (int)row, 0);
    apply(screen, 0, selected);
    while (at < end) {
        style = memchr(at, '\033', (size_t)(end - at));
        room -= add_plain(screen, at, (size_t)((style ? style : end) - at), room);
        at = style ? memchr(style, 'm', (size_t)(end - style)) : NULL;
        if (!at) {
            break;
        }
        apply(screen, (int)strtol(style + 2, NULL, 10), selected);
        at++;
    }
    /* the bar of a selected line fills the width */
    apply(screen, 0, selected);
    for (; selected && room > 0; room--) {
        (void)waddnstr(screen->window, " ", 1);
    }
    apply(screen, 0, false);
}

void screen_show(struct screen *screen)
{
    (void)wmove(screen->window, 0, 0);
    (void)wnoutrefresh(screen->window);
    (void)doupdate();
}

/* ---- keys */

int screen_key(struct screen *screen)
{
    static const struct {
        int code;
        enum screen_key key;
    } keys[] = {
        {KEY_UP, SCREEN_UP},
        {KEY_DOWN, SCREEN_DOWN},
        {KEY_LEFT, SCREEN_LEFT},
        {KEY_RIGHT, SCREEN_RIGHT},
        {KEY_PPAGE, SCREEN_PAGE_UP},
        {KEY_NPAGE, SCREEN_PAGE_DOWN},
        {KEY_HOME, SCREEN_HOME},
        {KEY_END, SCREEN_END},
        {KEY_ENTER, '\n'},
        {KEY_BACKSPACE, SCREEN_BACKSPACE},
        {'\r', '\n'},
        {'\b', SCREEN_BACKSPACE},
        {0x7f, SCREEN_BACKSPACE},
    };
    int code = wgetch(screen->window);

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (code == keys[i].code) {
            return keys[i].key;
        }
    }
    if (code == ERR) {
        return SCREEN_NO_KEY;
    }
    return code < 0x100 ? code : SCREEN_OTHER;
}
