/*
 * Part of an explanation: what stops the workers.
 */
#ifndef LEAT_VIEW_EXPLAIN_WORKERS_H
#define LEAT_VIEW_EXPLAIN_WORKERS_H

#include "view/explanation.h"

/* Adds nothing if a worker has a free slot. */
void explain_workers(struct explanation *explanation);

#endif
