/*
 * Sees to it that the guards live: starts them with the worker and its hold file, replaces one that
 * died, and closes the host (daemon/host.h) for as long as one is missing.
 */
#ifndef LEAT_DAEMON_WARDEN_H
#define LEAT_DAEMON_WARDEN_H

#include <stddef.h>
#include <sys/types.h>

#include "config/config.h"
#include "daemon/host.h"
#include "exec/runner.h"

struct ev_loop;
struct warden;

/* Starts the guards and waits until they do their work, gives them to the runner, and makes the
 * consumer's hold file, with what it says of the cgroup. host and runner outlive the loop's use of
 * it; it outlives the runner's. Returns NULL with errno. */
struct warden *warden_new(struct ev_loop *loop, const struct config *config, const char *consumer,
                          const char *cgroup, struct host *host, struct runner *runner);

/* Process ids of the guards that there are now, at most GUARD_COUNT (exec/guard.h). Returns how
 * many. */
size_t warden_guards(const struct warden *warden, pid_t *pids);

/* The worker has stopped. clean: as asked, so that nothing has to be proved of it later. */
void warden_part(struct warden *warden, bool clean);

/* After the runner's end. Where the worker did not part, or a process is left, the guards take it
 * for the daemon's death. NULL does nothing. */
void warden_free(struct warden *warden);

#endif
