/*
 * Leases: one renewal for all that the worker holds, on a timer; and the local deadlines by which
 * the processes of a task whose lease was not renewed are dead, before another worker may start it.
 * Times are CLOCK_BOOTTIME; a lease runs from the moment at which the last successful claim or
 * renewal was sent.
 */
#ifndef LEAT_DAEMON_CLAIM_LEASE_H
#define LEAT_DAEMON_CLAIM_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/session.h"
#include "exec/runner.h"

struct ev_loop;
struct lease;

struct lease_events {
    void (*tokens)(void *context, struct token_list *list);
    const char *(*heartbeat)(void *context);
    /* Answered: tokens that are not the worker's any more, and those of tasks that somebody asked
     * to cancel. The running ones among them have been told to end. */
    void (*told)(void *context, const struct token_set *lost, const struct token_set *cancelled);
    /* At each beat: alive says whether Redis answered the last one, or an outage is declared. */
    void (*heartbeat_done)(void *context, bool alive);
    void *context;
};

/* watchdog_ms: a beat at least twice in this time (0: none). Returns NULL with errno. */
struct lease *lease_new(struct ev_loop *loop, const struct config *config, struct session *session,
                        struct runner *runner, const struct queue *queue, const char *consumer,
                        int64_t watchdog_ms, const struct lease_events *events);
void lease_set_config(struct lease *lease, const struct config *config);
void lease_free(struct lease *lease);

/* The queue's lease as Redis told it; with the registration's or claim's time of sending. */
void lease_update(struct lease *lease, int64_t lease_ms);

/* Registration renewed all but the lost tokens: as a renewal that was sent then. */
void lease_registered(struct lease *lease, const struct queue_renew_reply *reply, int64_t sent_ns);

/* A renewal at once: what it names and answers is of now, even where another is under way. */
void lease_renew(struct lease *lease);

/* The deadline of what a command sent at sent_ns claimed. */
int64_t lease_deadline(const struct lease *lease, int64_t sent_ns);

/* False where a task with that deadline could be killed before its lease passes, but no sooner than
 * that: then it must not start at all. */
bool lease_has_room(const struct lease *lease, int64_t deadline_ns);

/* Whether kill grace and margin fit into the queue's lease; if not, no task may start here. */
bool lease_fits(const struct lease *lease);

/* To be called when an attempt has started: watches its deadline. */
void lease_watch(struct lease *lease, const struct attempt *attempt);

#endif
