/*
 * Begun tasks that wait to be started, in the order in which they came.
 */
#ifndef LEAT_DAEMON_CLAIM_WAITING_H
#define LEAT_DAEMON_CLAIM_WAITING_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/session/tokens.h"
#include "queue/task.h"

struct waiting_task {
    struct task *task;
    int64_t sent_ns;  /* when its claim was sent (CLOCK_BOOTTIME) */
    int64_t taken_ns; /* when that was answered */
    size_t size;      /* the bytes of its fields */
};

struct waiting {
    struct waiting_task *ring;
    size_t first, count, capacity;
    size_t size; /* of all together */
};

/* Takes the task unless it returns -1 (no memory). */
int waiting_add(struct waiting *waiting, struct task *task, int64_t sent_ns, int64_t taken_ns);

/* The one that waits longest; only where count > 0. */
const struct waiting_task *waiting_first(const struct waiting *waiting);
struct waiting_task waiting_take(struct waiting *waiting);

/* Adds the tokens of all, in order. */
void waiting_tokens(const struct waiting *waiting, struct token_list *list);

/* The lost are forgotten, the cancelled go back. */
void waiting_told(struct waiting *waiting, const struct token_set *lost,
                  const struct token_set *cancelled,
                  void (*put_back)(void *context, struct task *task), void *context);

/* With the tasks that are left. */
void waiting_free(struct waiting *waiting);

#endif
