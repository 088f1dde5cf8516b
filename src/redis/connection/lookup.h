/*
 * Looks up the address of a host without holding up the loop: getaddrinfo may wait for name servers
 * for longer than a lease, and they are often away together with Redis. It runs in a thread of its
 * own, which has no signals and touches nothing else.
 */
#ifndef LEAT_REDIS_CONNECTION_LOOKUP_H
#define LEAT_REDIS_CONNECTION_LOOKUP_H

#include <stdbool.h>

struct ev_loop;
struct lookup;

/* address is numeric; or NULL, and why says what is wrong. Both are valid only during the call. */
typedef void lookup_callback(void *context, const char *address, const char *why);

/* False for what is an address already. */
bool lookup_is_needed(const char *host);

/* host is copied. The callback comes once, from the loop; the lookup is gone then. Returns NULL
 * with errno. */
struct lookup *lookup_start(struct ev_loop *loop, const char *host, lookup_callback *callback,
                            void *context);

/* The callback does not come any more. NULL does nothing. */
void lookup_cancel(struct lookup *lookup);

#endif
