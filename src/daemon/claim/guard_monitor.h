/*
 * Sees to it that the guards live: starts them with the worker and its hold file, replaces one that
 * died, and closes the host (daemon/claim/host.h) for as long as one is missing.
 */
#ifndef LEAT_DAEMON_CLAIM_GUARD_MONITOR_H
#define LEAT_DAEMON_CLAIM_GUARD_MONITOR_H

#include <stdbool.h>

#include "config/config.h"
#include "daemon/claim/host.h"
#include "daemon/claim/isolation.h"
#include "exec/runner.h"

struct ev_loop;
struct guard_monitor;

/* Makes the guards and gives them to the runner, and makes the consumer's hold file. isolation
 * outlives it; host and runner outlive the loop's use of it; it outlives the runner's. Returns NULL
 * with errno. */
struct guard_monitor *guard_monitor_new(struct ev_loop *loop, const struct config *config,
                                        const char *consumer, const struct isolation *isolation,
                                        struct host *host, struct runner *runner);

/* Starts the guards and waits for a moment until they do their work. Where they can't be started
 * the host hears of it, and it is tried again and again. */
void guard_monitor_start(struct guard_monitor *guard_monitor);

/* Of the worker that was started in the cgroup with that name (exec/cgroup/hierarchy.h), and is
 * gone, nothing is left: it is this worker's own, too, and nobody else is in it. Reads some files.
 */
bool guard_monitor_proves(const struct guard_monitor *guard_monitor, const char *cgroup);

/* The worker has stopped. clean: as asked, so that nothing has to be proved of it later. */
void guard_monitor_part(struct guard_monitor *guard_monitor, bool clean);

/* After the runner's end. Where the worker did not part, or a process is left, the guards take it
 * for the daemon's death. NULL does nothing. */
void guard_monitor_free(struct guard_monitor *guard_monitor);

#endif
