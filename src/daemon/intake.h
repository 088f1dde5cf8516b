/*
 * Intake: when to claim, when to block, when to look for expired leases and dead workers. At most
 * one of a claim and a blocking read is under way; what a block brought is only a name until a
 * claim has passed it through the gate.
 */
#ifndef LEAT_DAEMON_INTAKE_H
#define LEAT_DAEMON_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/gate.h"
#include "daemon/herald.h"
#include "daemon/session.h"
#include "daemon/slots.h"
#include "daemon/warden.h"

struct ev_loop;
struct intake;

struct intake_events {
    /* A token that was read, is not begun and must go back; copied. */
    void (*put_back)(void *context, const char *token);
    /* The queue's lease, with each claim. */
    void (*lease)(void *context, int64_t lease_ms);
    void *context;
};

/* slots say how many tasks are wanted, and take them. herald: hears of the dead letters that claims
 * make, and looks once a scan period. warden: for adopting. All parts outlive it. Returns NULL
 * without memory. */
struct intake *intake_new(struct ev_loop *loop, const struct config *config,
                          struct session *session, struct slots *slots, const struct queue *queue,
                          const char *consumer, struct herald *herald, const struct warden *warden,
                          const struct intake_events *events);
void intake_set_config(struct intake *intake, const struct config *config);
void intake_free(struct intake *intake);

/* After a registration; and after the session's end. */
void intake_up(struct intake *intake);
void intake_down(struct intake *intake);

/* Something may be startable that was not: claim at the next turn. */
void intake_ask(struct intake *intake);

/* The bell: the same, where it was for that. */
void intake_rang(struct intake *intake, const struct queue_rung *rung);

/* Tokens that Redis does not take for the worker's any more. */
void intake_forget(struct intake *intake, const struct token_set *lost);

/* Claims nothing until told again; what a block still brings goes back. */
void intake_close(struct intake *intake);
void intake_open(struct intake *intake);

/* Closed or not: nothing is under way and nothing is held. */
bool intake_is_quiet(const struct intake *intake);

/* A claim's answer is awaited. */
bool intake_is_claiming(const struct intake *intake);

/* Whether Redis lets this worker start tasks, as its last answer said. */
enum gate_state intake_gate(const struct intake *intake);

/* Tokens read and not begun. */
void intake_tokens(const struct intake *intake, struct token_list *list);

/* Once at the end of each turn of the loop: sends what is to be sent. */
void intake_turn(struct intake *intake);

#endif
