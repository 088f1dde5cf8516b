/*
 * One thing that is still to be told to Redis, lists of them, and how it is told.
 */
#ifndef LEAT_DAEMON_REPORT_PENDING_OUTCOME_H
#define LEAT_DAEMON_REPORT_PENDING_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/runner.h"
#include "queue/queue.h"

struct pending_outcome {
    struct pending_outcome *next, *previous;
    struct attempt *attempt; /* NULL: only a token goes back */
    char *token;             /* owned; NULL where the attempt has it */
    struct outcome outcome;
    int64_t ttl_ms; /* for how long Redis keeps it; 0: not */
    bool again;
    bool refused;               /* Redis has refused it once */
    enum queue_settled settled; /* while it waits for replicas */
};

/* A list with a sentinel. */
struct pending_outcome_list {
    struct pending_outcome head;
    size_t count;
};

/* An empty one, or NULL without memory. */
struct pending_outcome *pending_outcome_new(void);

/* With its attempt; NULL does nothing. */
void pending_outcome_free(struct pending_outcome *result);

/* NULL for a result without attempt. */
const struct attempt *pending_outcome_attempt(const struct pending_outcome *result);
const char *pending_outcome_token(const struct pending_outcome *result);
enum verdict pending_outcome_verdict(const struct pending_outcome *result);

/* True once it was sent and no reply came: Redis may have settled it then. */
bool pending_outcome_sent_before(const struct pending_outcome *result);

/* Adds it to a leat_finish. */
void pending_outcome_add_to(struct command *command, const struct pending_outcome *result);

void pending_outcome_list_init(struct pending_outcome_list *list);
void pending_outcome_list_append(struct pending_outcome_list *list, struct pending_outcome *result);
void pending_outcome_list_remove(struct pending_outcome_list *list, struct pending_outcome *result);

/* In front, in their order: what was sent first goes first again. */
void pending_outcome_list_put_back(struct pending_outcome_list *to,
                                   struct pending_outcome_list *from);

/* With what is in it. */
void pending_outcome_list_free(struct pending_outcome_list *list);

#endif
