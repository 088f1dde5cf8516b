/*
 * leat wait: parts that waiting for tasks and for the whole queue share.
 */
#ifndef LEAT_CLI_WAIT_WAIT_H
#define LEAT_CLI_WAIT_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/cli.h"

#define WAIT_NOT_ALL 1 /* exit status: not all tasks succeeded */

struct wait_options {
    bool all, json;
    int64_t deadline_ns; /* CLOCK_BOOTTIME; INT64_MAX: none */
    char timeout[48];    /* for messages */
};

/* Waits until no task is ready, running or retrying. Returns an exit status. */
int wait_all(struct cli *cli, const struct wait_options *options);

#endif
