/*
 * A queue of claimed tasks that wait for a slot, in the order in which they came.
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
    int64_t taken_ns; /* when the reply to that claim came */
    size_t size;      /* the bytes of its fields */
};

struct waiting {
    struct waiting_task *ring;
    size_t first, count, capacity;
    size_t size; /* the bytes of all fields of all tasks */
};

/* Appends the task and owns it from now on. Returns 0, or −1 without memory: the caller keeps
 * it. */
int waiting_add(struct waiting *waiting, struct task *task, int64_t sent_ns, int64_t taken_ns);

/* The task that has waited longest; count must be above 0. */
const struct waiting_task *waiting_first(const struct waiting *waiting);
/* Removes that task; the caller owns it. */
struct waiting_task waiting_take(struct waiting *waiting);

/* Adds the tokens of all tasks, in order. */
void waiting_tokens(const struct waiting *waiting, struct token_list *list);

/* Frees the tasks that are lost, and gives those that are cancelled to put_back. */
void waiting_remove(struct waiting *waiting, const struct token_set *lost,
                    const struct token_set *cancelled,
                    void (*put_back)(void *context, struct task *task), void *context);

/* Frees the tasks that are left, and the memory. */
void waiting_free(struct waiting *waiting);

#endif
