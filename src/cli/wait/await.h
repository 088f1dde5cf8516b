/*
 * Waiting until tasks have ended: any number of them, without polling, and through outages of
 * Redis.
 */
#ifndef LEAT_CLI_WAIT_AWAIT_H
#define LEAT_CLI_WAIT_AWAIT_H

#include <stddef.h>
#include <stdint.h>

#include "cli/lib/cli.h"
#include "cli/show/result.h"

struct await_events {
    /* Called once for each id, as soon as its result is known. tid: the id of the task; asked: the
     * id or label that was given. Returns 0, or an exit status that ends the waiting. */
    int (*ended)(void *context, const char *tid, const char *asked, const struct result *result);
    void *context;
    /* If not NULL: set to when the first task that has not started expires (CLOCK_BOOTTIME);
     * INT64_MAX: none does. */
    int64_t *expires_ns;
};

/* Waits for tasks, by id or label. deadline_ns: CLOCK_BOOTTIME; INT64_MAX: none. Returns 0 when all
 * have ended, EX_TEMPFAIL at the deadline, with *left tasks that have not ended, or another exit
 * status after printing the error. */
int await_tasks(struct cli *cli, char *const *ids, size_t count, int64_t deadline_ns,
                const struct await_events *events, size_t *left);

#endif
