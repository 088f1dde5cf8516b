/*
 * Handles the keys of leat top.
 */
#ifndef LEAT_CLI_TOP_KEYS_H
#define LEAT_CLI_TOP_KEYS_H

#include <stdbool.h>

#include "cli/top/state.h"

/* Handles a key of screen_key. Returns false if leat top is to end. */
bool keys_press(struct top *top, int key);

#endif
