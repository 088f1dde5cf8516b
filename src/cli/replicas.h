/*
 * Whether enough replicas have what was enqueued.
 */
#ifndef LEAT_CLI_REPLICAS_H
#define LEAT_CLI_REPLICAS_H

#include <stdint.h>

#include "cli/cli.h"

/* Where [redis] wait_replicas asks for it: waits until so many have all that Redis has done up to
 * now, tasks of it for this command. Returns 0, or EX_TEMPFAIL, and has said what is the matter:
 * the tasks are in the queue. */
int cli_wait_replicas(const struct cli *cli, uint64_t tasks);

#endif
