/*
 * Stalls: the reason why no worker can start the tasks that a command waits for, printed once per
 * reason.
 */
#ifndef LEAT_CLI_WAIT_STALL_H
#define LEAT_CLI_WAIT_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/cli.h"

/* Zeroed before the first check. */
struct stall {
    int64_t due_ns; /* CLOCK_BOOTTIME of the next check; 0: the wait has not begun */
    int told;       /* the reason that was printed; 0: none */
};

/* The time until the next check, at least 1 and at most most_ms. */
int64_t stall_left_ms(struct stall *stall, int64_t most_ms);
bool stall_is_due(const struct stall *stall);

/* Puts the next check off, because nothing waits for a worker now. */
void stall_postpone(struct stall *stall);

/* Asks Redis for the reason and prints it. Prints nothing if the user may not ask, or if the
 * connection is lost, which the next call reports. */
void stall_check(struct stall *stall, struct cli *cli);

/* Returns true if the reply of leat_status has a reason that was not printed before; stall_tell
 * prints it. */
bool stall_read(struct stall *stall, const struct cli *cli, const struct redisReply *reply);
void stall_tell(const struct stall *stall, const struct cli *cli);

#endif
