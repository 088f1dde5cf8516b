/*
 * The address of the server, if the config itself names it. If a reload changes it, the server at
 * the new address is asked first: leatd follows at once to a master that has the same data, by the
 * replication ids that INFO reports. Elsewhere the running tasks would be unknown, so the worker
 * finishes them first.
 */
#ifndef LEAT_DAEMON_SESSION_ADDRESS_H
#define LEAT_DAEMON_SESSION_ADDRESS_H

#include "daemon/session/worker_context.h"
#include "redis/server_command.h"

struct address;

struct address_events {
    /* The server is now the one at the new address. Never called from within another call. */
    void (*moved)(void *context, const char *why);
    void *context;
};

/* Returns NULL without memory. */
struct address *address_new(struct worker_context *worker, const struct address_events *events);

/* The config was replaced: checks a changed address. `moved` follows, or the log says why the old
 * one stays in use, or the worker's context is `moving` until address_left. */
void address_reload(struct address *address);

/* The worker, which was to move, has nothing left at the address in use: `moved` follows. */
void address_left(struct address *address);

/* Notes the data of the server that the worker has registered with. Before that, any server will
 * do, since no task runs. */
void address_registered(struct address *address, const char *replid);

/* Returns a copy of the config's section with the address in use; valid until the next
 * address_reload. */
struct config_redis address_apply(const struct address *address);

/* True if the server has the data that replid names: it is that server, its replica, or was its
 * replica before it was promoted. */
bool address_has_data(const struct server_info *server, const char *replid);

/* NULL does nothing. */
void address_free(struct address *address);

#endif
