/*
 * Part of an explanation: what stops the whole queue, or one lane.
 */
#ifndef LEAT_VIEW_EXPLAIN_QUEUE_H
#define LEAT_VIEW_EXPLAIN_QUEUE_H

#include "view/explanation.h"

void explain_queue(struct explanation *explanation);

/* Adds nothing if the reply has no lane. */
void explain_lane(struct explanation *explanation);

#endif
