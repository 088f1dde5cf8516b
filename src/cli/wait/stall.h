/*
 * Why tasks that are waited for do not begin: told to who waits, once for each reason.
 */
#ifndef LEAT_CLI_WAIT_STALL_H
#define LEAT_CLI_WAIT_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/cli.h"

/* Zeroed, nothing was looked at yet. */
struct stall {
    int64_t due_ns; /* CLOCK_BOOTTIME of the next look; 0: the waiting begins now */
    int told;       /* which reason; 0: none holds */
};

/* How long may be waited until the next look is due, at most most_ms. */
int64_t stall_left_ms(struct stall *stall, int64_t most_ms);
bool stall_is_due(const struct stall *stall);

/* Asks Redis and tells. Who has no right to ask is told nothing; where the connection is lost the
 * next call says so. */
void stall_look(struct stall *stall, struct cli *cli);

/* True where leat_status's reply gives a reason that was not told: then stall_tell does. */
bool stall_read(struct stall *stall, const struct cli *cli, const struct redisReply *reply);
void stall_tell(const struct stall *stall, const struct cli *cli);

#endif
