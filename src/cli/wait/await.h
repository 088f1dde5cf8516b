/*
 * Waiting for the ends of tasks: however many, without polling, and over failures of Redis.
 */
#ifndef LEAT_CLI_WAIT_AWAIT_H
#define LEAT_CLI_WAIT_AWAIT_H

#include <stddef.h>
#include <stdint.h>

#include "cli/lib/cli.h"
#include "cli/show/result.h"

struct await_events {
    /* Once for each of the ids, as soon as it is known. tid: the task's id; asked: what was given.
     * Returns 0, or an exit status that ends the waiting. */
    int (*ended)(void *context, const char *tid, const char *asked, const struct ended *ended);
    void *context;
};

/* ids: of tasks, or labels. deadline_ns: CLOCK_BOOTTIME; INT64_MAX: none. Returns 0 when all have
 * ended, EX_TEMPFAIL at the deadline with *left of them, or another exit status after having said
 * why. */
int await_tasks(struct cli *cli, char *const *ids, size_t count, int64_t deadline_ns,
                const struct await_events *events, size_t *left);

#endif
