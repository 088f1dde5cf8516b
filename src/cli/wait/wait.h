/*
 * leat wait: for tasks, or for the whole queue.
 */
#ifndef LEAT_CLI_WAIT_WAIT_H
#define LEAT_CLI_WAIT_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/cli.h"

#define WAIT_NOT_ALL 1 /* exit status: not all have succeeded */

struct wait_options {
    bool all, json;
    int64_t deadline_ns; /* CLOCK_BOOTTIME; INT64_MAX: none */
    char timeout[64];    /* as it was given */
};

/* Until nothing is ready, running or to be retried. Returns an exit status. */
int wait_all(struct cli *cli, const struct wait_options *options);

#endif
