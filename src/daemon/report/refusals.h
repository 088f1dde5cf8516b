/*
 * Limits the log records that anyone who may add tasks can cause in any number: those about tasks
 * that never ran, and about tasks that got less than they asked for. Some of each second are
 * logged; the others are summed up in one record when the second is over.
 */
#ifndef LEAT_DAEMON_REPORT_REFUSALS_H
#define LEAT_DAEMON_REPORT_REFUSALS_H

#include <stdbool.h>

struct refusals;
struct worker_context;

enum refusal_kind {
    REFUSAL_DEAD,    /* a task became a dead letter and never ran */
    REFUSAL_LOWERED, /* a task asked for more than the configuration allows */
    REFUSAL_KINDS
};

/* Returns NULL without memory. */
struct refusals *refusals_new(const struct worker_context *worker);

void refusals_free(struct refusals *refusals); /* NULL does nothing */

/* Logs what was summed up now, and not when the second is over. */
void refusals_flush(struct refusals *refusals);

/* Returns true if the caller logs the record itself, and false if it was counted for the sum, which
 * has the last tid and reason; both are copied. NULL: always true. */
bool refusals_note(struct refusals *refusals, enum refusal_kind kind, const char *tid,
                   const char *reason);

#endif
