/*
 * The daemons of earlier programs that still run tasks beside this one, the main process: how many
 * slots they use, and that they hear of a stop and of a reload. The service manager watches the
 * main process only, so this process watches the others: it kills one that is silent for as long as
 * the service manager would wait.
 */
#ifndef LEAT_DAEMON_UPGRADE_ELDERS_H
#define LEAT_DAEMON_UPGRADE_ELDERS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/upgrade/hand_over.h"

struct ev_loop;
struct elders;

struct elders_events {
    /* One uses fewer slots, or has ended. */
    void (*changed)(void *context);
    /* The stop of one may take that long. */
    void (*stopping)(void *context, int64_t ms);
    void *context;
};

/* watchdog_ms: how long one may be silent; 0: for ever. Returns NULL without memory. */
struct elders *elders_new(struct ev_loop *loop, int64_t watchdog_ms,
                          const struct elders_events *events);

/* Adds one, and takes ownership of the socket to it. If there are HAND_OVER_ELDERS already, it only
 * closes the socket. */
void elders_add(struct elders *elders, int socket, const struct hand_over_elder *known);

size_t elders_count(const struct elders *elders);

/* Returns how many slots they use, HAND_OVER_ALL_SLOTS at the most. */
uint32_t elders_slots(const struct elders *elders);

/* Sends the word to all. */
void elders_tell(struct elders *elders, enum hand_over_word word);

/* Adds them to the packet, and sets fds to their sockets, which stay owned. */
void elders_list(const struct elders *elders, struct hand_over *packet, int fds[HAND_OVER_ELDERS]);

/* Closes the sockets, and forgets all: another process has got them, or nobody waits for them. */
void elders_forget(struct elders *elders);

void elders_free(struct elders *elders);

#endif
