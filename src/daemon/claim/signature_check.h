/*
 * Signed tasks between their claim and their start: each is verified, and then Redis is asked
 * whether its signature has run before, which takes one round trip for all that came in a turn.
 * Whatever cannot be found out keeps a task from running.
 */
#ifndef LEAT_DAEMON_CLAIM_SIGNATURE_CHECK_H
#define LEAT_DAEMON_CLAIM_SIGNATURE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/claim/host.h"
#include "daemon/session/session.h"
#include "daemon/session/tokens.h"
#include "queue/task.h"

struct signature_check;

struct signature_check_events {
    /* Each task that was taken and not forgotten comes back in one of these, the caller's again. */
    void (*passed)(void *context, struct task *task, int64_t sent_ns);
    void (*refused)(void *context, struct task *task, const char *reason);
    /* It must not start here, or not now. */
    void (*put_back)(void *context, struct task *task);
    void *context;
};

/* All parts outlive it. Returns NULL without memory. */
struct signature_check *signature_check_new(const struct config *config, struct session *session,
                                            const struct queue *queue, struct host *host,
                                            const struct signature_check_events *events);
/* Only while it has no tasks. */
void signature_check_set_config(struct signature_check *signature_check,
                                const struct config *config);
void signature_check_free(struct signature_check *signature_check);

/* Whether tasks have to be signed. */
bool signature_check_is_wanted(const struct signature_check *signature_check);

/* Takes a task that task_check has let pass; sent_ns comes back with it. */
void signature_check_take(struct signature_check *signature_check, struct task *task,
                          int64_t sent_ns);

/* Once a turn: asks Redis for those that were taken. */
void signature_check_turn(struct signature_check *signature_check);

/* How many it has, and whether one of them has to run alone on its worker. */
size_t signature_check_count(const struct signature_check *signature_check);
bool signature_check_has_suspect(const struct signature_check *signature_check);

void signature_check_tokens(const struct signature_check *signature_check, struct token_list *list);

/* The lost are forgotten, the cancelled go back. */
void signature_check_told(struct signature_check *signature_check, const struct token_set *lost,
                          const struct token_set *cancelled);

/* All go back. */
void signature_check_shut(struct signature_check *signature_check);

/* After the session's end: they are forgotten. */
void signature_check_down(struct signature_check *signature_check);

#endif
