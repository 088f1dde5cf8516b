/* Collects errors in a file and sorts them by line. */
#include "config/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

/* Appends fail only if memory ran out. Then the count still shows that there were errors, and
 * report_finish says that some are missing. */
static size_t begin(struct report *report, const char *name, size_t line)
{
    size_t start = report->text.size;

    report->count++;
    (void)escape_append(&report->text, name, strlen(name));
    if (line > 0) {
        (void)buffer_printf(&report->text, ":%zu", line);
    }
    (void)buffer_append_text(&report->text, ": ");
    return start;
}

static void end(struct report *report, size_t line, size_t start)
{
    struct report_span span = {.line = line, .begin = start};

    (void)buffer_append_text(&report->text, "\n"); /* report_finish checks for failures */
    span.end = report->text.size;
    (void)buffer_append(&report->spans, &span, sizeof span);
}

void report_add(struct report *report, size_t line, const char *format, ...)
{
    char text[512];
    va_list arguments;
    size_t start = begin(report, report->path, line);

    /* all texts fit; a longer one would lose its end */
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)buffer_append_text(&report->text, text); /* report_finish checks for failures */
    end(report, line, start);
}

static void append_reason(struct report *report, const struct buffer *why)
{
    /* report_finish checks for failures */
    if (why->failed) {
        (void)buffer_append_text(&report->text, "out of memory");
        report->no_memory = true;
    } else {
        (void)buffer_append(&report->text, why->data, why->size);
    }
}

void report_reason(struct report *report, size_t line, const char *key, const struct buffer *why)
{
    size_t start = begin(report, report->path, line);

    (void)buffer_printf(&report->text, "%s: ", key); /* report_finish checks for failures */
    append_reason(report, why);
    end(report, line, start);
}

void report_given(struct report *report, const char *name, const struct buffer *why)
{
    size_t start = begin(report, name, 0);

    append_reason(report, why);
    end(report, 0, start);
}

void report_no_memory(struct report *report)
{
    report->count++;
    report->no_memory = true;
}

/* Sorts by line, with errors of no line last, and by arrival within a line. */
static int compare(const void *a, const void *b)
{
    const struct report_span *first = a, *second = b;
    size_t first_line = first->line - 1,
           second_line = second->line - 1; /* line 0 becomes the largest */

    if (first_line != second_line) {
        return first_line < second_line ? -1 : 1;
    }
    return first->begin < second->begin ? -1 : first->begin > second->begin;
}

void report_finish(struct report *report, struct buffer *errors)
{
    size_t count = report->spans.size / sizeof(struct report_span);
    struct report_span *spans = (void *)report->spans.data;

    if (count > 1) {
        qsort(spans, count, sizeof *spans, compare);
    }
    for (size_t i = 0; i < count; i++) {
        /* a failure sets errors->failed */
        (void)buffer_append(errors, report->text.data + spans[i].begin,
                            spans[i].end - spans[i].begin);
    }
    if (report->no_memory || report->text.failed || report->spans.failed) {
        (void)buffer_printf(errors, "%s: out of memory: some errors may be missing\n",
                            report->path); /* a failure of this is the same one */
        errors->failed = true;
    }
    buffer_free(&report->text);
    buffer_free(&report->spans);
}
