/*
 * leat run: what its parts share.
 */
#ifndef LEAT_CLI_RUN_RUN_H
#define LEAT_CLI_RUN_RUN_H

#include <stddef.h>

#include "cli/lib/cli.h"
#include "cli/show/result.h"

#define RUN_TIMEOUT 124 /* exit statuses, as timeout(1) and env(1) have them */
#define RUN_LOST 125    /* leat cannot tell, or it never ran to an end */
#define RUN_CANNOT_EXECUTE 126
#define RUN_CANCELLED 130 /* what a shell makes of SIGINT */

/* The exit status that stands for the task's end, and what is to be said of it; "" for nothing. */
int run_status(const struct ended *ended, char *text, size_t size);

/* From before the task is enqueued on: a signal that comes while that is under way must not leave a
 * task that nobody follows. */
void run_catch_signals(void);

/* Follows the task until its end: its output comes out here. SIGINT and SIGTERM cancel it, also
 * where they came before; the second leaves it alone. Returns the exit status. */
int run_follow(struct cli *cli, const char *tid);

#endif
