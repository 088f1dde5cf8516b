/*
 * Waiting until enough replicas have the enqueued tasks.
 */
#ifndef LEAT_CLI_ENQUEUE_REPLICA_WAIT_H
#define LEAT_CLI_ENQUEUE_REPLICA_WAIT_H

#include <stdint.h>

#include "cli/lib/cli.h"

/* Exit status: the tasks are in the queue, but not on enough replicas. It is not EX_TEMPFAIL,
 * because a caller that retries would add the tasks twice. */
enum { REPLICAS_TOO_FEW = 2 };

/* If [redis] wait_replicas is set, waits until that many replicas have all writes of Redis up to
 * now. tasks: how many tasks this command has added, for the statistics. Returns 0, or
 * REPLICAS_TOO_FEW after printing the error. */
int cli_wait_replicas(const struct cli *cli, uint64_t tasks);

#endif
