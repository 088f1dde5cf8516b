/*
 * Intake: when to claim, when to block, when to look for expired leases and dead workers. At most
 * one of a claim and a blocking read is under way; what a block brought is only a name until a
 * claim has passed it through the gate.
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

struct ev_loop;
struct claim_loop;

struct claim_loop_events {
    /* A token that was read, is not begun and must go back; copied. */
    void (*put_back)(void *context, const char *token);
    /* The queue's lease, with each claim. */
    void (*lease)(void *context, int64_t lease_ms);
    void *context;
};

/* slots say how many tasks are wanted, and take them. herald: hears of the dead letters that claims
 * make, and looks once a scan period. warden: for adopting. All parts outlive it. Returns NULL
 * without memory. */
struct claim_loop *claim_loop_new(struct ev_loop *loop, const struct config *config,
                                  struct session *session, struct slots *slots,
                                  const struct queue *queue, const char *consumer,
                                  struct dead_hook *dead_hook,
                                  const struct guard_monitor *guard_monitor,
                                  const struct claim_loop_events *events);
void claim_loop_set_config(struct claim_loop *claim_loop, const struct config *config);
void claim_loop_free(struct claim_loop *claim_loop);

/* After a registration; and after the session's end. */
void claim_loop_up(struct claim_loop *claim_loop);
void claim_loop_down(struct claim_loop *claim_loop);

/* Something may be startable that was not: claim at the next turn. */
void claim_loop_ask(struct claim_loop *claim_loop);

/* The bell: the same, where it was for that. */
void claim_loop_rang(struct claim_loop *claim_loop, const struct queue_wakeup *wakeup);

/* Tokens that Redis does not take for the worker's any more. */
void claim_loop_forget(struct claim_loop *claim_loop, const struct token_set *lost);

/* Claims nothing until told again; what a block still brings goes back. */
void claim_loop_close(struct claim_loop *claim_loop);
void claim_loop_open(struct claim_loop *claim_loop);

/* Closed or not: nothing is under way and nothing is held. */
bool claim_loop_is_quiet(const struct claim_loop *claim_loop);

/* A claim's answer is awaited. */
bool claim_loop_is_claiming(const struct claim_loop *claim_loop);

/* Whether Redis lets this worker start tasks, as its last answer said. */
enum pause_kind claim_loop_pause(const struct claim_loop *claim_loop);

/* Tokens read and not begun. */
void claim_loop_tokens(const struct claim_loop *claim_loop, struct token_list *list);

/* Once at the end of each turn of the loop: sends what is to be sent. */
void claim_loop_turn(struct claim_loop *claim_loop);

#endif
