/*
 * The worker's unsettled reports to Redis: the outcome of each attempt, and the tokens of entries
 * that go back unstarted. Each is kept until Redis has settled it, and sent again after a lost
 * reply; all that is queued in one loop turn goes out in one call. With [redis] wait_replicas it is
 * kept longer: see replicas.h.
 */
#ifndef LEAT_DAEMON_REPORT_OUTCOMES_H
#define LEAT_DAEMON_REPORT_OUTCOMES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/report/pending_outcome.h"
#include "daemon/session/session.h"
#include "exec/runner.h"

struct outcomes;

struct outcomes_events {
    /* Redis has answered; the outcome is freed after this call. QUEUE_KEPT: Redis refused it with
     * `error`; it is kept and sent again. */
    void (*settled)(void *context, const struct pending_outcome *pending,
                    enum queue_settled settled, const char *error);
    void *context;
};

/* Returns NULL without memory. */
struct outcomes *outcomes_new(struct worker_context *worker, const struct outcomes_events *events);
void outcomes_free(struct outcomes *outcomes);

/* Reserves memory for the outcomes of `count` attempts in total, running ones and those about to
 * start, so that no outcome is lost without memory. Returns 0, or −1 without memory. */
int outcomes_reserve(struct outcomes *outcomes, size_t count);

/* Queues the outcome of a reserved attempt, and takes the attempt. ttl_ms: how long Redis keeps the
 * result if the task does not say so itself; 0: not. */
void outcomes_end(struct outcomes *outcomes, struct attempt *attempt, const struct outcome *outcome,
                  int64_t ttl_ms);

/* Queues a token that goes back unstarted; it is copied. unclaimed: it was only read, and if the
 * worker runs its task, this stays so. Without memory the session recovers, and its registration
 * returns the token to the queue. */
void outcomes_put_back(struct outcomes *outcomes, const char *token, bool unclaimed);

/* Sends all that is queued, if the session is up. */
void outcomes_flush(struct outcomes *outcomes);

/* Returns whether to wait for more before sending: one call costs Redis the same for one outcome as
 * for several, so calls are a few milliseconds apart. The loop turns again when the wait is
 * over. */
bool outcomes_coalesce(struct outcomes *outcomes);

/* Returns how many are not settled, sent or not. */
size_t outcomes_count(const struct outcomes *outcomes);

/* Returns whether Redis has refused an outcome that is not settled yet: no new tasks should be
 * claimed. */
bool outcomes_troubled(const struct outcomes *outcomes);

/* Adds the tokens of outcomes that are not in flight. Those in flight are settled before any later
 * command runs. */
void outcomes_tokens(const struct outcomes *outcomes, struct token_list *list);

/* Adds only those of tasks that go back to the queue without an attempt: the worker may have read
 * them without claiming them. */
void outcomes_unclaimed_tokens(const struct outcomes *outcomes, struct token_list *list);

#endif
