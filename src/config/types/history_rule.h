/*
 * How many ended tasks a queue keeps, or for how long. Pure functions.
 */
#ifndef LEAT_CONFIG_TYPES_HISTORY_RULE_H
#define LEAT_CONFIG_TYPES_HISTORY_RULE_H

#include <stddef.h>
#include <stdint.h>

#define HISTORY_RULE_FORMS "a number up to 100000, an age from 1m to 3650d such as 7d, or none"

/* Parses a number ("1000"), an age ("7d") or none. Writes the number, minus the age in ms, or 0.
 * Returns 0, or -1 if the text is none of them. */
int history_rule_parse(const char *text, int64_t *value);

/* Writes the value as Redis stores it: "1000", "1w" or "0"; size ≥ 48. */
void history_rule_format(int64_t value, char *text, size_t size);

#endif
