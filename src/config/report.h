/*
 * Where errors in a file are gathered, a line each, and put in the order of the file.
 */
#ifndef LEAT_CONFIG_REPORT_H
#define LEAT_CONFIG_REPORT_H

#include <stddef.h>

#include "base/buffer.h"

struct report {
    const char *path; /* the file's name in messages; not owned */
    size_t count;
    struct buffer text;  /* the messages, as they came */
    struct buffer spans; /* struct report_span: where each is in there */
};

struct report_span {
    size_t line, begin, end;
};

/* Adds "PATH:LINE: text"; with line 0, which means that no line is to blame, "PATH: text". */
void report_add(struct report *report, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the reason that a setter gave, after the key it is about. */
void report_reason(struct report *report, size_t line, const char *key, const struct buffer *why);

/* Adds the reason of something that is not from the file, after its name: "--redis: text". */
void report_given(struct report *report, const char *name, const struct buffer *why);

/* Appends all messages to errors, in the order of their lines, and frees what it gathered. Without
 * memory some may be missing, and errors says so. */
void report_finish(struct report *report, struct buffer *errors);

#endif
