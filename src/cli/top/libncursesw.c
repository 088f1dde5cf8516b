/*
 * The functions of libncursesw that leat top uses. The library is loaded when the terminal is set
 * up: no other command needs it.
 */
#include "cli/top/libncursesw.h"

#include <unistd.h>

#define NCURSES_NOMACROS
#include <ncurses.h>
#include <term.h>

#include "base/process/shared_object.h"

static struct shared_object libncursesw = {.file = "libncursesw.so.6"};

#define FUNCTION(type, name, parameters, arguments, failure)                                       \
    SHARED_OBJECT_FUNCTION(libncursesw, type, name, parameters, arguments, failure)

/* ---- the terminal */

FUNCTION(int, setupterm, (const char *type, int fd, int *error), (type, fd, error), ERR)
FUNCTION(TERMINAL *, set_curterm, (TERMINAL * terminal), (terminal), NULL)
FUNCTION(int, del_curterm, (TERMINAL * terminal), (terminal), ERR)
FUNCTION(SCREEN *, newterm, (const char *type, FILE *out, FILE *in), (type, out, in), NULL)
FUNCTION(char *, tigetstr, (const char *name), (name), NULL)
FUNCTION(int, endwin, (void), (), ERR)
FUNCTION(int, cbreak, (void), (), ERR)
FUNCTION(int, noecho, (void), (), ERR)
FUNCTION(int, curs_set, (int visibility), (visibility), ERR)
FUNCTION(int, set_escdelay, (int ms), (ms), ERR)
FUNCTION(int, resize_term, (int rows, int width), (rows, width), ERR)
FUNCTION(int, start_color, (void), (), ERR)
FUNCTION(int, use_default_colors, (void), (), ERR)
FUNCTION(int, init_pair, (short pair, short front, short back), (pair, front, back), ERR)
FUNCTION(bool, has_colors, (void), (), false)
FUNCTION(int, doupdate, (void), (), ERR)
SHARED_OBJECT_FREE(libncursesw, delscreen, (SCREEN * screen), (screen))

/* ---- the window */

FUNCTION(WINDOW *, newwin, (int rows, int width, int y, int x), (rows, width, y, x), NULL)
FUNCTION(int, delwin, (WINDOW * window), (window), ERR)
FUNCTION(int, keypad, (WINDOW * window, bool on), (window, on), ERR)
FUNCTION(int, nodelay, (WINDOW * window, bool on), (window, on), ERR)
FUNCTION(int, wresize, (WINDOW * window, int rows, int width), (window, rows, width), ERR)
FUNCTION(int, werase, (WINDOW * window), (window), ERR)
FUNCTION(int, clearok, (WINDOW * window, bool on), (window, on), ERR)
FUNCTION(int, wmove, (WINDOW * window, int y, int x), (window, y, x), ERR)
FUNCTION(int, wattr_set, (WINDOW * window, attr_t attributes, short pair, void *more),
         (window, attributes, pair, more), ERR)
FUNCTION(int, waddnstr, (WINDOW * window, const char *text, int size), (window, text, size), ERR)
FUNCTION(int, wnoutrefresh, (WINDOW * window), (window), ERR)
FUNCTION(int, wgetch, (WINDOW * window), (window), ERR)

/* ---- */

bool libncursesw_can_move(void)
{
    int error;
    bool can;

    if (setupterm(NULL, STDOUT_FILENO, &error) != OK) {
        return false;
    }
    can = tigetstr("cup") != NULL;
    (void)del_curterm(set_curterm(NULL)); /* it only fails if there is nothing to free */
    return can;
}
