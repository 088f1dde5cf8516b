/*
 * The ring buffer of claimed tasks that wait for a slot.
 */
#include "daemon/claim/waiting.h"

#include <stdlib.h>

#include "daemon/report/task_log.h"

enum { FIRST_CAPACITY = 16 };

static int grow(struct waiting *waiting)
{
    size_t capacity = waiting->capacity ? waiting->capacity * 2 : FIRST_CAPACITY;
    struct waiting_task *ring = calloc(capacity, sizeof *ring);
    if (!ring) {
        return -1;
    }
    for (size_t i = 0; i < waiting->count; i++) {
        ring[i] = waiting->ring[(waiting->first + i) % waiting->capacity];
    }
    free(waiting->ring);
    waiting->ring = ring;
    waiting->first = 0;
    waiting->capacity = capacity;
    return 0;
}

int waiting_add(struct waiting *waiting, struct task *task, int64_t sent_ns, int64_t taken_ns)
{
    if (waiting->count == waiting->capacity && grow(waiting)) {
        return -1;
    }
    struct waiting_task *last =
        &waiting->ring[(waiting->first + waiting->count++) % waiting->capacity];
    *last = (struct waiting_task){task, sent_ns, taken_ns, task_bytes(task)};
    waiting->size += last->size;
    return 0;
}

const struct waiting_task *waiting_first(const struct waiting *waiting)
{
    return &waiting->ring[waiting->first];
}

struct waiting_task waiting_take(struct waiting *waiting)
{
    struct waiting_task taken = waiting->ring[waiting->first];
    waiting->first = (waiting->first + 1) % waiting->capacity;
    waiting->count--;
    waiting->size -= taken.size;
    return taken;
}

void waiting_tokens(const struct waiting *waiting, struct token_list *list)
{
    for (size_t i = 0; i < waiting->count; i++) {
        const struct waiting_task *next = &waiting->ring[(waiting->first + i) % waiting->capacity];
        token_list_add(list, next->task->token);
    }
}

/* Takes each task from the front and appends those that stay, which keeps their order. */
void waiting_remove(struct waiting *waiting, const struct token_set *lost,
                    const struct token_set *cancelled,
                    void (*put_back)(void *context, struct task *task), void *context)
{
    for (size_t i = waiting->count; i > 0; i--) {
        struct waiting_task next = waiting_take(waiting);
        if (token_set_has(lost, next.task->token)) {
            task_free(next.task);
        } else if (token_set_has(cancelled, next.task->token)) {
            task_log_cancelled(next.task->tid);
            put_back(context, next.task);
        } else if (waiting_add(waiting, next.task, next.sent_ns, next.taken_ns)) {
            put_back(context, next.task); /* cannot happen: there is room */
        }
    }
}

void waiting_free(struct waiting *waiting)
{
    while (waiting->count > 0) {
        task_free(waiting_take(waiting).task);
    }
    free(waiting->ring);
    *waiting = (struct waiting){0};
}
