/*
 * leat run and leat attach: functions that they share.
 */
#ifndef LEAT_CLI_RUN_RUN_H
#define LEAT_CLI_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/lib/cli.h"
#include "cli/show/result.h"

#define RUN_TIMEOUT 124 /* exit statuses, as of timeout(1) and env(1) */
#define RUN_FAILED 125  /* leat failed, or the command did not run or not to its end */
#define RUN_CANNOT_EXECUTE 126
#define RUN_CANCELLED 130 /* as shells report SIGINT */

/* Returns the exit status for the result of the task, and writes a message for people; "": none. */
int run_status(const struct result *result, char *text, size_t size);

/* Catches SIGINT and SIGTERM from now on. Call it before the task is enqueued: a signal in between
 * must not leave a task that nobody follows. */
void run_catch_signals(void);

/* Follows the task until it ends, and writes its output. The first SIGINT or SIGTERM since
 * run_catch_signals cancels the task, a second one leaves it running. expires: the task does if it
 * does not start in time; without a worker, this ends it then. Returns the exit status. */
int run_follow(struct cli *cli, const char *tid, bool expires);

/* How a task is followed that is not the caller's own. */
struct run_watch {
    /* Writes output of the task: 1 is stdout, 2 is stderr. Returns 0, or an exit status after
     * printing the error. NULL: the bytes go to leat's own stdout and stderr. */
    int (*write)(void *context, int number, struct bytes data, int64_t attempt);
    void *context;
    bool ended; /* set if the task has ended */
    int failed; /* set to the exit status that tells why leat itself failed; 0: it did not */
};

/* Follows the task as run_follow does, but asks its worker for the output, and never cancels it:
 * signals since run_catch_signals, or a closed output, only end the following. id: its tid or
 * label. */
int run_attach(struct cli *cli, const char *id, struct run_watch *watch);

#endif
