/*
 * Durations and sizes as people write them: 250ms, 30s, 5m, 2h, 1d, 1w, sums such as 1m30s; 512,
 * 64K, 10M, 1G (powers of 1024). A bare number is seconds for durations, bytes for sizes.
 */
#ifndef LEAT_BASE_UNITS_H
#define LEAT_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* Milliseconds into *ms. Returns 0, or -1 where text is no duration, negative, or over 100 years.
 */
int units_parse_duration(const char *text, int64_t *ms);

/* Bytes into *bytes. Returns 0, or -1 where text is no size or over INT64_MAX. */
int units_parse_size(const char *text, int64_t *bytes);

/* A whole number of percent, "150%", into *percent. Returns 0 or -1. */
int units_parse_percent(const char *text, int64_t *percent);

/* A whole decimal number within [low, high] into *value. Returns 0 or -1. */
int units_parse_integer(const char *text, int64_t low, int64_t high, int64_t *value);

enum { UNITS_INTEGER_SIZE = 24 }; /* of the text of any int64_t */

/* Writes it in decimal into text, of size UNITS_INTEGER_SIZE; several times as fast as snprintf.
 * Returns the text's length. */
size_t units_format_integer(int64_t number, char *text);

enum { UNITS_SECONDS_SIZE = UNITS_INTEGER_SIZE + 4 };

/* Writes ms as seconds with three decimals (1500 → "1.500"; below zero is zero) into text, of size
 * UNITS_SECONDS_SIZE. Returns the text's length. */
size_t units_format_seconds(int64_t ms, char *text);

/* Writes the shortest exact form (90000 → "1m30s", 1500 → "1s500ms"); size ≥ 48. */
void units_format_duration(int64_t ms, char *text, size_t size);

#endif
