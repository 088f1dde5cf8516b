/*
 * Making the reasons of an explanation. Each of its parts adds those that it finds.
 */
#ifndef LEAT_VIEW_REASONS_H
#define LEAT_VIEW_REASONS_H

#include <stdint.h>

#include "view/explanation.h"

/* Adds a reason, whose text is printed, and returns it. A reason beyond EXPLAIN_REASONS is lost. */
struct explain_reason *reasons_add(struct explanation *explanation, const char *name, bool blocks,
                                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Append to its text: printed, or bytes, of which a long text is cut. */
void reasons_printf(struct explain_reason *reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void reasons_bytes(struct explain_reason *reason, struct bytes bytes);

/* Append "in 3m (2026-01-31 12:00:00 CET)" or the like. */
void reasons_time(struct explain_reason *reason, int64_t unix_ms, int64_t now_ms);

/* Append how long ago, or how long: "3m12s". */
void reasons_span(struct explain_reason *reason, int64_t ms);

/* Append {name, worker …} of a reply: "T1 (on W1), T2 (on W2)". */
void reasons_tasks(struct explain_reason *reason, const struct redisReply *tasks);

/* Note a value, for programs. */
void reasons_put_number(struct explain_reason *reason, const char *name, int64_t number);
void reasons_put_text(struct explain_reason *reason, const char *name, struct bytes text);

#endif
