/*
 * Queries of terminfo by leat top. The header of terminfo defines macros with names such as
 * `columns`, so only libncursesw.c includes it.
 */
#ifndef LEAT_CLI_TOP_LIBNCURSESW_H
#define LEAT_CLI_TOP_LIBNCURSESW_H

#include <stdbool.h>

/* True if the terminal of $TERM is known and can move its cursor. False if libncursesw cannot be
 * loaded. newterm leaks memory for other terminals. */
bool libncursesw_can_move(void);

#endif
