/*
 * Rates, and settings of lanes, as people write them and as leat.lua keeps them: 20/s; weight, how
 * many may run, rate, burst.
 */
#ifndef LEAT_CONFIG_TYPES_LIMITS_H
#define LEAT_CONFIG_TYPES_LIMITS_H

#include <stdbool.h>

#include "base/buffer.h"

#define LIMITS_LANE_MOST 200 /* bytes of a lane's name */

/* In each case why gets what is wrong with the text, and what would be right; it is failed where
 * there was no memory. */

/* Makes *rate a copy of text, NULL for "none". Returns 0 or -1. */
int limits_set_rate(char **rate, const char *text, struct buffer *why);

/* Appends the settings in the one form that all workers compare: "2, 3, 20/s, 40", without what is
 * missing at the end, and with - where it is missing before that. Returns 0 or -1. */
int limits_settings(const char *text, struct buffer *settings, struct buffer *why);

/* Adds "NAME=SETTINGS" to the NULL-terminated list (NULL while empty). Returns 0 or -1. */
int limits_add_lane(char ***list, const char *name, const char *text, struct buffer *why);

/* Splits an entry of that list: the name's length is the result, *settings what follows it. */
size_t limits_split_lane(const char *entry, const char **settings);

#endif
