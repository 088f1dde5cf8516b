/*
 * Signed tasks between claim and start. Each signature is verified; then Redis is asked whether it
 * was used before, in one round trip for all tasks that came in a turn. If anything cannot be
 * verified, the task does not run.
 */
#ifndef LEAT_DAEMON_CLAIM_SIGNATURE_CHECK_H
#define LEAT_DAEMON_CLAIM_SIGNATURE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/claim/host.h"
#include "daemon/session/session.h"
#include "queue/task.h"

struct signature_check;

struct signature_check_events {
    /* Each task that was taken, and not freed since, comes back in one of these; the caller owns
     * it. */
    void (*passed)(void *context, struct task *task, int64_t sent_ns);
    void (*refused)(void *context, struct task *task, const char *reason);
    /* The task must not start here, or not now. */
    void (*put_back)(void *context, struct task *task);
    void *context;
};

/* host must outlive the object. Returns NULL without memory. */
struct signature_check *signature_check_new(struct worker_context *worker, struct host *host,
                                            const struct signature_check_events *events);
/* The config was replaced. Allowed only while it has no tasks. */
void signature_check_reload(struct signature_check *signature_check);
void signature_check_free(struct signature_check *signature_check);

/* Returns whether tasks must be signed. */
bool signature_check_is_wanted(const struct signature_check *signature_check);

/* Takes a task that task_check accepted; sent_ns is passed back with it. */
void signature_check_take(struct signature_check *signature_check, struct task *task,
                          int64_t sent_ns);

/* Asks Redis about the tasks that were taken. Call it once in each turn of the loop. */
void signature_check_turn(struct signature_check *signature_check);

/* They return the number of tasks it has, and whether one that runs alone is among them. */
size_t signature_check_count(const struct signature_check *signature_check);
bool signature_check_has_lone_task(const struct signature_check *signature_check);

void signature_check_tokens(const struct signature_check *signature_check, struct token_list *list);

/* Frees tasks that are lost, and puts back those that are cancelled. */
void signature_check_remove(struct signature_check *signature_check, const struct token_set *lost,
                            const struct token_set *cancelled);

/* Puts back all tasks. */
void signature_check_put_back(struct signature_check *signature_check);

/* The session ended: frees all tasks. */
void signature_check_down(struct signature_check *signature_check);

#endif
