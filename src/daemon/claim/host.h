/*
 * Whether this host can run tasks at all. After a fault that is not a task's own (missing program,
 * full disk) it claims nothing for a while, longer each time, then probes with one task.
 */
#ifndef LEAT_DAEMON_CLAIM_HOST_H
#define LEAT_DAEMON_CLAIM_HOST_H

#include <stdbool.h>

#include "exec/runner.h"

struct ev_loop;
struct host;

struct host_events {
    void (*close)(void *context); /* claim nothing */
    void (*open)(void *context);  /* claim, one task at a time while host_is_doubtful */
    void *context;
};

/* Returns NULL without memory. */
struct host *host_new(struct ev_loop *loop, const struct host_events *events);
void host_free(struct host *host);

/* A task could not be run here. What fails while it is closed counts as the same fault. */
void host_fault(struct host *host, const char *tid, const char *reason);

/* A task ran. */
void host_fine(struct host *host);

/* An attempt has ended: one of the two, or neither. What those of a batch tell is told once. A
 * listed program that is missing is told of, and closes nothing: only its tasks need it. */
void host_ended(struct host *host, const struct attempt *attempt);

/* Nobody would end tasks if the daemon could not: closed until that is over. */
void host_unguarded(struct host *host, bool unguarded);

bool host_is_closed(const struct host *host);

/* Why, for people. */
const char *host_trouble(const struct host *host);

/* The last task that was tried here could not be run. */
bool host_is_doubtful(const struct host *host);

#endif
