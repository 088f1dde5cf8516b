/*
 * Whether enough replicas have what was enqueued.
 */
#ifndef LEAT_CLI_ENQUEUE_REPLICA_WAIT_H
#define LEAT_CLI_ENQUEUE_REPLICA_WAIT_H

#include <stdint.h>

#include "cli/lib/cli.h"

/* The tasks are in the queue, but too few replicas are known to have them. Not EX_TEMPFAIL: who
 * tried that again would have them twice. */
enum { REPLICAS_TOO_FEW = 2 };

/* Where [redis] wait_replicas asks for it: waits until so many have all that Redis has done up to
 * now, tasks of it for this command. Returns 0, or REPLICAS_TOO_FEW, and has said what is the
 * matter. */
int cli_wait_replicas(const struct cli *cli, uint64_t tasks);

#endif
