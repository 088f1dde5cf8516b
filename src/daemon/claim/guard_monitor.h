/*
 * Keeps the guards alive: starts them with the worker, creates the worker's lock file, replaces a
 * guard that died, and closes the host (daemon/claim/host.h) while one is missing.
 */
#ifndef LEAT_DAEMON_CLAIM_GUARD_MONITOR_H
#define LEAT_DAEMON_CLAIM_GUARD_MONITOR_H

#include <stdbool.h>

#include "daemon/claim/host.h"
#include "daemon/claim/isolation.h"
#include "exec/runner.h"

struct guard_monitor;

/* Creates the guards, hands them to the runner, and creates the consumer's lock file. isolation
 * must outlive the object; host and runner must live while the loop runs it; the object must
 * outlive the runner's use of the guards. Returns NULL with errno. */
struct guard_monitor *guard_monitor_new(struct worker_context *worker,
                                        const struct isolation *isolation, struct host *host,
                                        struct runner *runner);

/* Starts the guards and waits a moment until they are ready. If they cannot be started, the host is
 * closed, and starting them is retried. */
void guard_monitor_start(struct guard_monitor *guard_monitor);

/* Returns whether no process is left of a dead worker that ran in the cgroup with that name
 * (exec/cgroup/hierarchy.h): true if it is this worker's own cgroup, and only this worker is in it.
 * Reads some files. */
bool guard_monitor_proves(const struct guard_monitor *guard_monitor, const char *cgroup);

/* Logs once if the worker's lock file was removed or replaced. */
void guard_monitor_check_lock(struct guard_monitor *guard_monitor);

/* The worker has stopped, as asked. clean: Redis knows it, so nothing has to be proved about it
 * later; otherwise its lock file says that it did not crash. */
void guard_monitor_stop(struct guard_monitor *guard_monitor, bool clean);

/* Call it after the runner was freed. If the worker did not stop cleanly, or a process is left, the
 * guards treat this as the daemon's death. NULL does nothing. */
void guard_monitor_free(struct guard_monitor *guard_monitor);

#endif
