/*
 * An outcome that Redis has not settled yet, lists of them, and how one is written into a call.
 */
#ifndef LEAT_DAEMON_REPORT_PENDING_OUTCOME_H
#define LEAT_DAEMON_REPORT_PENDING_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buffer.h"
#include "daemon/session/worker_context.h"
#include "exec/runner.h"
#include "queue/replies.h"
#include "queue/task.h"

struct pending_outcome {
    TAILQ_ENTRY(pending_outcome) link;
    struct attempt *attempt; /* owned; NULL: only a token goes back */
    char *token;             /* owned; NULL: the attempt has it */
    struct outcome outcome;
    int64_t ttl_ms;             /* how long Redis keeps the result; 0: not */
    bool again;                 /* sent before without a reply: Redis may have settled it */
    bool unclaimed;             /* a token that was only read */
    bool refused;               /* Redis has refused it once */
    enum queue_settled settled; /* while it waits for replicas */
};

struct pending_outcome_list {
    TAILQ_HEAD(, pending_outcome) list;
    size_t count;
};

/* Returns an empty one, or NULL without memory. */
struct pending_outcome *pending_outcome_new(void);

/* Frees it and its attempt; NULL does nothing. */
void pending_outcome_free(struct pending_outcome *pending);

const char *pending_outcome_token(const struct pending_outcome *pending);

/* Adds it to the leat_finish that the worker is building, and its record to `successes` if it is a
 * success. */
void pending_outcome_add_to(struct worker_context *worker, const struct pending_outcome *pending,
                            struct buffer *successes);

void pending_outcome_list_init(struct pending_outcome_list *list);
void pending_outcome_list_append(struct pending_outcome_list *list,
                                 struct pending_outcome *pending);
void pending_outcome_list_remove(struct pending_outcome_list *list,
                                 struct pending_outcome *pending);

/* Moves all of `from` to the front of `to`, in order, so that what was sent first is sent first
 * again. */
void pending_outcome_list_put_back(struct pending_outcome_list *to,
                                   struct pending_outcome_list *from);

/* Frees all outcomes of the list. */
void pending_outcome_list_free(struct pending_outcome_list *list);

#endif
