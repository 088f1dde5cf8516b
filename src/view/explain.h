/*
 * Reads a reply of leat_explain.
 */
#ifndef LEAT_VIEW_EXPLAIN_H
#define LEAT_VIEW_EXPLAIN_H

#include <stdint.h>

#include "view/explanation.h"

struct redisReply;

#define EXPLAIN_ELEMENTS 8 /* the least number of elements in the reply */

enum explain_subject { EXPLAIN_TASK, EXPLAIN_LANE, EXPLAIN_QUEUE };

/* Reads a reply, which stays the caller's and must outlive the explanation. group: of the
 * configuration. default_lease_ms: as for status_read. Returns 0, or -1 without memory. Call
 * explain_free in any case. */
int explain_read(const struct redisReply *reply, enum explain_subject subject, const char *group,
                 int64_t default_lease_ms, struct explanation *explanation);
void explain_free(struct explanation *explanation);

/* "runs", "will-run", "open", "blocked", "succeeded", "cancelled", "dead" or "unknown". */
const char *explain_verdict_name(enum explain_verdict verdict);

#endif
