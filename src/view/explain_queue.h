/*
 * Part of an explanation: what stops the whole queue, or one lane.
 */
#ifndef LEAT_VIEW_EXPLAIN_QUEUE_H
#define LEAT_VIEW_EXPLAIN_QUEUE_H

#include "view/explanation.h"

/* group: of the configuration. */
void explain_queue(struct explanation *explanation, const char *group);

/* Adds nothing if the reply has no lane. */
void explain_lane(struct explanation *explanation);

#endif
