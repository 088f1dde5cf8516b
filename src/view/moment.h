/*
 * Times and time spans as people write and read them.
 */
#ifndef LEAT_VIEW_MOMENT_H
#define LEAT_VIEW_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOMENT_SIZE 64 /* enough for every text here */

/* Parses "2026-01-31T12:00:00Z" (RFC 3339), "2026-01-31 12:00[:00]" (local time) or "@1769860800"
 * (Unix seconds). Returns 0, or -1 if the text is none of them. */
int moment_parse(const char *text, int64_t *unix_ms);

/* False for a time that is missing (0) or so far in the future that no clock explains it: producers
 * choose ids, which have the time at which a task was enqueued. */
bool moment_is_past(int64_t unix_ms, int64_t now_ms);

/* Writes a span in its two largest units, rounded down: "0s", "250ms", "3m12s", "2d3h". A negative
 * span counts as 0. */
void moment_span(int64_t ms, char *text, size_t size);

/* Writes "3m12s ago", "in 4m", or within a second "just now" or "now". */
void moment_relative(int64_t unix_ms, int64_t now_ms, char *text, size_t size);

/* Writes the local time: "2026-01-31 12:00:00 CET". */
void moment_local(int64_t unix_ms, char *text, size_t size);

#endif
