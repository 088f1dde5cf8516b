/*
 * What is still to be told to Redis: the outcome of each attempt, and what goes back unstarted.
 * Kept until Redis has settled it, sent again after a lost reply, batched: all that one loop turn
 * has goes out in one call. With [redis] wait_replicas kept for a while longer: see replicas.h.
 */
#ifndef LEAT_DAEMON_REPORT_OUTCOMES_H
#define LEAT_DAEMON_REPORT_OUTCOMES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/report/live.h"
#include "daemon/report/pending_outcome.h"
#include "daemon/session/session.h"
#include "exec/runner.h"

struct ev_loop;
struct outcomes;

struct outcomes_events {
    /* Redis has answered; the result is freed after this call. error is the text for QUEUE_KEPT
     * only, and such a result stays and is sent again. */
    void (*settled)(void *context, const struct pending_outcome *result, enum queue_settled settled,
                    const char *error);
    void *context;
};

struct outcomes *outcomes_new(struct ev_loop *loop, const struct config *config,
                              struct session *session, struct live *live, const struct queue *queue,
                              const char *consumer, const struct outcomes_events *events);
void outcomes_free(struct outcomes *outcomes);

/* Room for what becomes of so many attempts, those that run and those that are to start: what has
 * ended must not be lost for want of memory. Returns 0, or -1 without memory. */
int outcomes_reserve(struct outcomes *outcomes, size_t count);

/* The outcome of one of these; takes the attempt. ttl_ms: for how long Redis keeps what becomes of
 * a task that does not say it itself; 0: not. */
void outcomes_end(struct outcomes *outcomes, struct attempt *attempt, const struct outcome *outcome,
                  int64_t ttl_ms);

/* A token that goes back; copied. Returns 0 or −1 without memory. */
int outcomes_put_back(struct outcomes *outcomes, const char *token);

/* Sends all that is queued, if the session is up: before it, what the ended tasks have written. */
void outcomes_flush(struct outcomes *outcomes);

/* True where what is queued should wait for more: a round trip costs Redis the same for one as for
 * several, so they follow each other no faster than every few milliseconds. The loop turns again
 * when the wait is over. */
bool outcomes_coalesce(struct outcomes *outcomes);

/* Not settled yet, sent or not. */
size_t outcomes_count(const struct outcomes *outcomes);

/* True while some are not settled that Redis has refused: no new tasks should be claimed then. */
bool outcomes_troubled(const struct outcomes *outcomes);

/* Those that wait to be sent. What is under way is settled before any command that is sent later
 * can run. */
void outcomes_tokens(const struct outcomes *outcomes, struct token_list *list);

#endif
