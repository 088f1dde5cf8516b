/*
 * TLS on a connection, if hiredis has it (hiredis_ssl; compiled in with LEAT_TLS). The name of the
 * server is checked here, since hiredis checks only the authority.
 */
#ifndef LEAT_REDIS_CONNECTION_TLS_H
#define LEAT_REDIS_CONNECTION_TLS_H

#include <stddef.h>

#include "config/config.h"

struct redisContext;

/* Starts TLS, if configured, on a connection that is open or connecting; on a blocking connection
 * it also completes the handshake. Returns 0, or -1 and why. */
int tls_begin(struct redisContext *redis, const struct config_redis *config, char *why,
              size_t size);

/* Writes into text why TLS lost the connection, such as a refused certificate. Returns 0, or -1 if
 * TLS has nothing to say or is not used. */
int tls_explain(const struct redisContext *redis, char *text, size_t size);

#endif
