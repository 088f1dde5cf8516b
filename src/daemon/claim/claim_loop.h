/*
 * Decides when to claim, when to wait in a blocking read, and when to scan for expired leases and
 * dead workers. At most one of a claim and a blocking read is in flight. A token from a blocking
 * read is only a name: its task starts after a claim has succeeded for it.
 */
#ifndef LEAT_DAEMON_CLAIM_CLAIM_LOOP_H
#define LEAT_DAEMON_CLAIM_CLAIM_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/claim/guard_monitor.h"
#include "daemon/claim/pause_state.h"
#include "daemon/claim/slots.h"
#include "daemon/report/dead_hook.h"
#include "daemon/session/session.h"

struct claim_loop;

/* slots: says how many tasks to claim, and takes them. lease: learns of the queue's lease.
 * outcomes: takes tokens that go back. dead_hook: learns of dead letters that claims make, and
 * retries once in a scan period. guard_monitor: for reclaiming. All of them must outlive the
 * object. Returns NULL without memory. */
struct claim_loop *claim_loop_new(struct worker_context *worker, struct slots *slots,
                                  struct lease *lease, struct outcomes *outcomes,
                                  struct dead_hook *dead_hook, struct guard_monitor *guard_monitor);
void claim_loop_free(struct claim_loop *claim_loop);

/* The session came up; the session ended. */
void claim_loop_up(struct claim_loop *claim_loop);
void claim_loop_down(struct claim_loop *claim_loop);

/* There may be something to claim: claims in the next turn. */
void claim_loop_schedule(struct claim_loop *claim_loop);

/* A message came on the wakeup stream: claims, or checks for a pause, if it says so. */
void claim_loop_wakeup(struct claim_loop *claim_loop, const struct queue_wakeup *wakeup);

/* Forgets tokens that Redis no longer holds for this worker. */
void claim_loop_forget(struct claim_loop *claim_loop, const struct token_set *lost);

/* Returns whether nothing is in flight, and no token is kept. */
bool claim_loop_is_quiet(const struct claim_loop *claim_loop);

/* They return whether a claim is in flight, or a blocking read. */
bool claim_loop_is_claiming(const struct claim_loop *claim_loop);
bool claim_loop_is_waiting(const struct claim_loop *claim_loop);

/* Returns whether Redis lets this worker start tasks, by its last reply. */
enum pause_kind claim_loop_pause(const struct claim_loop *claim_loop);

/* Returns the greatest fencing token of all tasks that were claimed so far; 0: none. */
int64_t claim_loop_fence(const struct claim_loop *claim_loop);

/* Adds the tokens that were read and not claimed. */
void claim_loop_tokens(const struct claim_loop *claim_loop, struct token_list *list);

/* Sends what is due. Call it once at the end of each turn of the loop. */
void claim_loop_turn(struct claim_loop *claim_loop);

#endif
