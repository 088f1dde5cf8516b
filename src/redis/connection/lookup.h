/*
 * Looks up the address of a host without blocking the loop: getaddrinfo may wait for name servers
 * for longer than a lease, and they often fail together with Redis. It runs in a thread of its own,
 * which blocks all signals and touches nothing else.
 */
#ifndef LEAT_REDIS_CONNECTION_LOOKUP_H
#define LEAT_REDIS_CONNECTION_LOOKUP_H

#include <stdbool.h>

struct ev_loop;
struct lookup;

/* address is numeric; or it is NULL, and why says what failed. Both are valid only during the
 * call. */
typedef void lookup_callback(void *context, const char *address, const char *why);

/* False if host is an address already. */
bool lookup_is_needed(const char *host);

/* Copies host. Calls the callback once, from the loop, and frees the lookup then. Returns NULL with
 * errno set. */
struct lookup *lookup_start(struct ev_loop *loop, const char *host, lookup_callback *callback,
                            void *context);

/* The callback will not be called. NULL does nothing. */
void lookup_cancel(struct lookup *lookup);

#endif
