/*
 * Keeps the tasks that somebody follows in a small table.
 */
#include "daemon/report/followed.h"

#include <stddef.h>
#include <string.h>

void followed_add(struct followed *followed, const char *tid, int64_t until_ns)
{
    struct followed_task *place = &followed->tasks[0];
    size_t size = strlen(tid) + 1;
    if (size > sizeof place->tid) {
        return;
    }
    for (size_t i = 0; i < FOLLOWED_MOST; i++) {
        struct followed_task *task = &followed->tasks[i];
        if (strcmp(task->tid, tid) == 0) {
            task->until_ns = task->until_ns > until_ns ? task->until_ns : until_ns;
            return;
        }
        place = task->until_ns < place->until_ns ? task : place;
    }
    memcpy(place->tid, tid, size);
    place->until_ns = until_ns;
}

int64_t followed_until(const struct followed *followed, const char *tid)
{
    for (size_t i = 0; i < FOLLOWED_MOST; i++) {
        if (strcmp(followed->tasks[i].tid, tid) == 0) {
            return followed->tasks[i].until_ns;
        }
    }
    return 0;
}
