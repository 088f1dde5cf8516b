/*
 * Parses and formats durations (250ms, 30s, 5m, 2h, 1d, 1w, sums such as 1m30s), sizes (512, 64K,
 * 10M, 1G, powers of 1024), percentages and integers. A number without a unit is seconds or bytes.
 */
#ifndef LEAT_BASE_UNITS_H
#define LEAT_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* What the functions below return for a value of the right form that is too large. */
enum { UNITS_TOO_LARGE = 1 };

/* Writes milliseconds to *ms. Returns 0, -1 if text is no duration, or negative, or UNITS_TOO_LARGE
 * if it is over 100 years. */
int units_parse_duration(const char *text, int64_t *ms);

/* Writes bytes to *bytes. Returns 0, -1 if text is no size, or UNITS_TOO_LARGE if it is over
 * INT64_MAX. */
int units_parse_size(const char *text, int64_t *bytes);

/* Parses a whole number of percent, such as "150%". Returns 0, -1 or UNITS_TOO_LARGE. */
int units_parse_percent(const char *text, int64_t *percent);

/* Parses a decimal integer from low to high. Returns 0, -1 if text is none, or UNITS_TOO_LARGE if
 * no int64_t holds it. */
int units_parse_integer(const char *text, int64_t low, int64_t high, int64_t *value);

enum { UNITS_INTEGER_SIZE = 24 }; /* for the text of any int64_t */

/* Writes the number in decimal into text, which has UNITS_INTEGER_SIZE bytes. Several times as fast
 * as snprintf. Returns the length of the text. */
size_t units_format_integer(int64_t number, char *text);

enum { UNITS_SECONDS_SIZE = UNITS_INTEGER_SIZE + 4 };

/* Writes ms as seconds with three decimals (1500 → "1.500"; negative numbers as zero) into text,
 * which has UNITS_SECONDS_SIZE bytes. Returns the length of the text. */
size_t units_format_seconds(int64_t ms, char *text);

/* Writes the shortest exact form (90000 → "1m30s", 1500 → "1s500ms"); size ≥ 48. */
void units_format_duration(int64_t ms, char *text, size_t size);

/* Writes the shortest exact form that units_parse_size reads (65536 → "64K", 1000 → "1000") into
 * text, which has UNITS_INTEGER_SIZE bytes. bytes must not be negative. */
void units_format_size(int64_t bytes, char *text);

#endif
