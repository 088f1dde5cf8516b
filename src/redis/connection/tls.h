/*
 * TLS on a connection, where hiredis has it (hiredis_ssl; compiled in with LEAT_TLS). Who the
 * server is gets checked here, since hiredis only checks who has signed for it.
 */
#ifndef LEAT_REDIS_CONNECTION_TLS_H
#define LEAT_REDIS_CONNECTION_TLS_H

#include <stddef.h>

#include "config/config.h"

struct redisContext;

/* Begins TLS on a connection that is there or being made, if the config asks for it: a blocking one
 * has shaken hands then. Returns 0, or -1 and why. */
int tls_begin(struct redisContext *redis, const struct config_redis *config, char *why,
              size_t size);

/* Of a connection that was lost: why the server's certificate was refused, or what else TLS has
 * against it, into text. Returns 0, or -1 where TLS has nothing to say, or is not spoken. */
int tls_explain(const struct redisContext *redis, char *text, size_t size);

#endif
