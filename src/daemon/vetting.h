/*
 * Signed tasks between their claim and their start: each is verified, and then Redis is asked
 * whether its signature has run before, which takes one round trip for all that came in a turn.
 * Whatever cannot be found out keeps a task from running.
 */
#ifndef LEAT_DAEMON_VETTING_H
#define LEAT_DAEMON_VETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/host.h"
#include "daemon/session.h"
#include "daemon/tokens.h"
#include "queue/task.h"

struct vetting;

struct vetting_events {
    /* Each task that was taken and not forgotten comes back in one of these, the caller's again. */
    void (*passed)(void *context, struct task *task, int64_t sent_ns);
    void (*refused)(void *context, struct task *task, const char *reason);
    /* It must not start here, or not now. */
    void (*put_back)(void *context, struct task *task);
    void *context;
};

/* All parts outlive it. Returns NULL without memory. */
struct vetting *vetting_new(const struct config *config, struct session *session,
                            const struct queue *queue, struct host *host,
                            const struct vetting_events *events);
/* Only while it has no tasks. */
void vetting_set_config(struct vetting *vetting, const struct config *config);
void vetting_free(struct vetting *vetting);

/* Whether tasks have to be signed. */
bool vetting_is_wanted(const struct vetting *vetting);

/* Takes a task that task_check has let pass; sent_ns comes back with it. */
void vetting_take(struct vetting *vetting, struct task *task, int64_t sent_ns);

/* Once a turn: asks Redis for those that were taken. */
void vetting_turn(struct vetting *vetting);

/* How many it has, and whether one of them has to run alone on its worker. */
size_t vetting_count(const struct vetting *vetting);
bool vetting_has_suspect(const struct vetting *vetting);

void vetting_tokens(const struct vetting *vetting, struct token_list *list);

/* The lost are forgotten, the cancelled go back. */
void vetting_told(struct vetting *vetting, const struct token_set *lost,
                  const struct token_set *cancelled);

/* All go back. */
void vetting_shut(struct vetting *vetting);

/* After the session's end: they are forgotten. */
void vetting_down(struct vetting *vetting);

#endif
