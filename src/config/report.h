/*
 * Collects errors in a file, one line each, and sorts them by line number.
 */
#ifndef LEAT_CONFIG_REPORT_H
#define LEAT_CONFIG_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

struct report {
    const char *path; /* name of the file in messages, which escape it; not owned */
    size_t count;
    bool no_memory;
    struct buffer text;  /* the messages in the order of their arrival */
    struct buffer spans; /* an array of struct report_span, one for each message in text */
};

struct report_span {
    size_t line, begin, end;
};

/* Adds "PATH:LINE: text", or "PATH: text" if line is 0, for errors that belong to no line. */
void report_add(struct report *report, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds "PATH:LINE: key: " and the reason that a setter wrote into why. */
void report_reason(struct report *report, size_t line, const char *key, const struct buffer *why);

/* Adds the reason of something that is not from the file, after its name: "--redis: text". */
void report_given(struct report *report, const char *name, const struct buffer *why);

/* Notes that memory ran out. */
void report_no_memory(struct report *report);

/* Appends all messages to errors, sorted by line, and frees the report. If memory ran out, some may
 * be missing: errors says so, and errors->failed is set. */
void report_finish(struct report *report, struct buffer *errors);

#endif
