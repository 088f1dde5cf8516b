/*
 * Calls of commands that wait for long: a failure is not fatal, and an outage of Redis is waited
 * out.
 */
#ifndef LEAT_CLI_WAIT_RETRY_CALL_H
#define LEAT_CLI_WAIT_RETRY_CALL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/cli.h"

#define RETRY_SIGNAL (-1)

/* Start with only the first three members set, and worked if another call has succeeded. */
struct retry {
    const char *what;     /* "cannot …" */
    int64_t deadline_ns;  /* CLOCK_BOOTTIME; INT64_MAX: none */
    const sigset_t *mask; /* signals that are blocked while it waits; NULL: no change */

    int status;             /* if not 0: exit with it; the error was printed */
    enum redis_error error; /* of the last call without a reply; NONE: a signal was caught */
    char why[512];
    unsigned failures; /* attempts to connect in this outage */
    bool told;         /* the outage was reported */
    bool worked;       /* a call has succeeded */
};

/* Sends a command, waits for its reply and checks it as cli_call does; elements 0: accepts any
 * reply. Returns the reply for freeReplyObject, or NULL after setting status or error. */
struct redisReply *retry_call(struct retry *retry, struct cli *cli, struct command *command,
                              size_t elements);

/* The same for a command that blocks in Redis for up to block_ms; block_ms must not exceed the time
 * until the deadline, and a reply that is more than a second later counts as none. After a signal
 * the command is still in flight: call again with command NULL to wait for its reply. */
struct redisReply *retry_blocking_call(struct retry *retry, struct cli *cli,
                                       struct command *command, int64_t block_ms);

/* How long a read may block until at_ns (CLOCK_BOOTTIME): at least 1, at most most_ms. */
int64_t retry_until_ms(int64_t at_ns, int64_t most_ms);

/* The time until the deadline, at least 1 and at most most_ms. */
int64_t retry_left_ms(const struct retry *retry, int64_t most_ms);

/* Call it after a call has failed. If the error is temporary, reports it once per outage and
 * reconnects, with growing pauses. That the config names a server that is not the master is
 * temporary only if a call has succeeded before. Returns 0 when it is connected, EX_TEMPFAIL at the
 * deadline, RETRY_SIGNAL if a signal was caught, or another exit status after printing the error.
 */
int retry_reconnect(struct retry *retry, struct cli *cli);

/* Call it after a call has succeeded: the outage is over. */
void retry_recovered(struct retry *retry);

#endif
