/*
 * The health of this host: whether it can run tasks at all. After a fault that is not a task's own
 * (missing program, full disk) the worker claims nothing for a while, longer each time, and then
 * tries one task.
 */
#ifndef LEAT_DAEMON_CLAIM_HOST_H
#define LEAT_DAEMON_CLAIM_HOST_H

#include <stdbool.h>

#include "daemon/session/worker_context.h"
#include "exec/runner.h"

struct host;

/* Returns NULL without memory. */
struct host *host_new(struct worker_context *worker);
void host_free(struct host *host);

/* A task could not run here, or a resident process; then tid is NULL. A fault while the host is
 * closed counts as the same fault. */
void host_fault(struct host *host, const char *tid, const char *reason);

/* A task ran: the host works. Returns whether it was in doubt. */
bool host_fine(struct host *host);

/* An attempt has ended: calls host_fault, host_fine or neither. A fault of a batch is logged once.
 * A missing listed program is logged, but does not close the host, since only its tasks need it.
 * Returns whether the host is no longer in doubt. */
bool host_ended(struct host *host, const struct attempt *attempt);

/* Closes the host while no guard could end tasks in place of the daemon. */
void host_unguarded(struct host *host, bool unguarded);

bool host_is_closed(const struct host *host);

/* Returns why the host is closed, for people. */
const char *host_trouble(const struct host *host);

/* Returns whether the last task that was tried here could not run: tasks are tried one at a
 * time. */
bool host_is_doubtful(const struct host *host);

#endif
