/*
 * For commands that wait: calls whose failure is no end, and what is done while Redis is away.
 */
#ifndef LEAT_CLI_WAIT_RETRY_CALL_H
#define LEAT_CLI_WAIT_RETRY_CALL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/cli.h"

#define PATIENCE_SIGNAL (-1)

/* Zeroed but for the first three. */
struct patience {
    const char *what;     /* "cannot …" */
    int64_t deadline_ns;  /* CLOCK_BOOTTIME; INT64_MAX: none */
    const sigset_t *mask; /* what is blocked while it waits; NULL: as it is */

    int status;             /* set: the command is to end with it, the reason was told */
    enum redis_error error; /* of the last call that gave no reply; NONE: a signal was caught */
    char why[512];
    unsigned failures; /* of connecting, in this outage */
    bool told;         /* this outage was */
};

/* Sends, waits, and checks as cli_call does; elements 0: any reply. Returns the reply for
 * freeReplyObject, or NULL: then either status is set, or error. */
struct redisReply *patience_call(struct patience *patience, struct cli *cli,
                                 struct command *command, size_t elements);

/* The same for a command that blocks so long at the most; the caller asks for no more than the
 * deadline leaves. After a signal the command is still under way: NULL waits on for it. */
struct redisReply *patience_block(struct patience *patience, struct cli *cli,
                                  struct command *command, int64_t block_ms);

/* How long a read may block: until the deadline, at most most_ms. */
int64_t patience_left_ms(const struct patience *patience, int64_t most_ms);

/* After a call that failed. Where that is a matter of time, says it once an outage, closes the
 * connection, and opens one as soon as that works. Returns 0; EX_TEMPFAIL at the deadline;
 * PATIENCE_SIGNAL where a signal was caught; or another exit status after having said why. */
int patience_reconnect(struct patience *patience, struct cli *cli);

/* What was tried after that has worked: the outage is over. */
void patience_end(struct patience *patience);

#endif
