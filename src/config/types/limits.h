/*
 * Parses rates (20/s) and settings of lanes (weight, max_running, rate, burst) into the form that
 * leat.lua keeps.
 */
#ifndef LEAT_CONFIG_TYPES_LIMITS_H
#define LEAT_CONFIG_TYPES_LIMITS_H

#include <stdbool.h>

#include "base/buffer.h"

/* On an error, each function writes into why what is wrong and what to do, or sets why->failed if
 * memory ran out. */

/* Replaces *rate by a copy of text, or by NULL for "none". Returns 0 or -1. */
int limits_set_rate(char **rate, const char *text, struct buffer *why);

/* Appends the settings in canonical form, so that workers can compare them: "2, 3, 20/s, 40".
 * Missing settings at the end are left out; others become -. Returns 0 or -1. */
int limits_settings(const char *text, struct buffer *settings, struct buffer *why);

/* Adds "NAME=SETTINGS" to the NULL-terminated list (NULL if empty). Returns 0 or -1. */
int limits_add_lane(char ***list, const char *name, const char *text, struct buffer *why);

/* Splits an entry of that list. Returns the length of the name; *settings points to the
 * settings. */
size_t limits_split_lane(const char *entry, const char **settings);

#endif
