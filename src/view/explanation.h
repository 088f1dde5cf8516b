/*
 * Why a task, a lane or a queue does not run, or what became of the task, as a list of reasons.
 */
#ifndef LEAT_VIEW_EXPLANATION_H
#define LEAT_VIEW_EXPLANATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "view/status.h"

struct redisReply;
struct config_queue;

enum explain_verdict {
    EXPLAIN_RUNS,      /* the task */
    EXPLAIN_WILL_RUN,  /* the task, without anybody's doing */
    EXPLAIN_OPEN,      /* tasks of the lane or the queue can start */
    EXPLAIN_BLOCKED,   /* nothing starts until somebody acts, or a fault ends */
    EXPLAIN_SUCCEEDED, /* the task, by its result or the history */
    EXPLAIN_CANCELLED,
    EXPLAIN_DEAD,    /* the task is a dead letter, or was one */
    EXPLAIN_UNKNOWN, /* no such task or lane, and neither a result nor a record of its end */
};

/* A number or a name of a reason. */
struct explain_value {
    const char *name;  /* as in JSON: names of times end in _ms */
    struct bytes text; /* data NULL: it is a number */
    int64_t number;
};

#define EXPLAIN_VALUES 6    /* at most, of a reason */
#define EXPLAIN_REASONS 100 /* at most */

struct explain_reason {
    const char *name;   /* such as "paused" */
    bool blocks;        /* nothing starts until somebody acts, or a fault ends */
    struct buffer text; /* a sentence for people; names in it may have any bytes */
    struct explain_value values[EXPLAIN_VALUES];
    size_t value_count;
};

/* Reasons that block come first. The status and all bytes point into the reply. */
struct explanation {
    const struct config_queue *queue; /* of the caller */
    enum explain_verdict verdict;
    struct status status;
    const struct redisReply *row;   /* of the task, as in leat_show; empty: none */
    struct bytes history;           /* of the task */
    struct explain_reason *reasons; /* EXPLAIN_REASONS, and one that takes what exceeds them */
    size_t count;
};

#endif
