/*
 * Leases: one renewal for everything that the worker holds, on a timer, and local deadlines. If a
 * task's lease cannot be renewed, its processes are dead before another worker may start it. Times
 * are of CLOCK_BOOTTIME; a lease counts from the moment at which the last successful claim or
 * renewal was sent.
 */
#ifndef LEAT_DAEMON_CLAIM_LEASE_H
#define LEAT_DAEMON_CLAIM_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/session.h"
#include "exec/runner.h"

struct lease;

struct lease_events {
    /* A reply came: tokens that this worker no longer holds, and tokens of cancelled tasks. The
     * running tasks among them have already been told to end. */
    void (*renewed)(void *context, const struct token_set *lost, const struct token_set *cancelled);
    /* A renewal has dead-lettered tasks. */
    void (*dead_lettered)(void *context);
    /* After each heartbeat. alive: Redis has answered the last one, or the log says that there is
     * no session. */
    void (*heartbeat_done)(void *context, bool alive);
    void *context;
};

/* runner must outlive the object. watchdog_ms: send a heartbeat at least twice in this time; 0: no
 * watchdog. Returns NULL with errno. */
struct lease *lease_new(struct worker_context *worker, struct runner *runner, int64_t watchdog_ms,
                        const struct lease_events *events);

/* The config was replaced. */
void lease_reload(struct lease *lease, const struct config *former);
void lease_free(struct lease *lease);

/* Sets the queue's lease, as Redis said with a reply. Returns whether it is another one: then
 * renew, unless the reply was to a renewal. */
bool lease_update(struct lease *lease, int64_t lease_ms);

/* A registration renews all tokens but the lost ones, like a renewal that was sent then. */
void lease_registered(struct lease *lease, const struct queue_renew_reply *reply, int64_t sent_ns);

/* Renews now; if a renewal is in flight, renews again after it, so that the reply is current. */
void lease_renew(struct lease *lease);

/* An attempt has ended. Redis learns within a second what the worker has counted: at once if it has
 * not been told of another one in the last second. */
void lease_counted(struct lease *lease);

/* Returns the longest lease that tasks of any worker may have by now: the queue's, or for one lease
 * after that was lowered, the former one. */
int64_t lease_longest_ms(const struct lease *lease);

/* Returns the deadline of tasks that a command sent at sent_ns claimed. */
int64_t lease_deadline(const struct lease *lease, int64_t sent_ns);

/* Returns false if a task with that deadline could not be ended in time before its lease ends: it
 * must not start. */
bool lease_has_room(const struct lease *lease, int64_t deadline_ns);

/* Returns whether kill_grace and the margin fit into the queue's lease; if not, no task may
 * start. */
bool lease_fits(const struct lease *lease);

/* Ends attempts whose time has come, and watches the deadlines of all others. Call it when attempts
 * of a batch run again. */
void lease_enforce(struct lease *lease);

/* Watches the deadline of an attempt that has started. */
void lease_watch(struct lease *lease, const struct attempt *attempt);

#endif
