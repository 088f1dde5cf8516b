/*
 * Reads a reply of leat_explain.
 */
#ifndef LEAT_VIEW_EXPLAIN_H
#define LEAT_VIEW_EXPLAIN_H

#include "view/explanation.h"

struct redisReply;

#define EXPLAIN_ELEMENTS 8 /* the least number of elements in the reply */

enum explain_subject { EXPLAIN_TASK, EXPLAIN_LANE, EXPLAIN_QUEUE };

/* Reads a reply. The reply and the queue stay the caller's and must outlive the explanation.
 * Returns 0, or -1 without memory. Call explain_free in any case. */
int explain_read(const struct redisReply *reply, enum explain_subject subject,
                 const struct config_queue *queue, struct explanation *explanation);

/* Replaces that a task is unknown by how it ended. row: of the history; it must outlive the
 * explanation. */
void explain_by_history(struct explanation *explanation, const struct redisReply *row);

void explain_free(struct explanation *explanation);

/* "runs", "will-run", "open", "blocked", "succeeded", "cancelled", "dead" or "unknown". */
const char *explain_verdict_name(enum explain_verdict verdict);

#endif
