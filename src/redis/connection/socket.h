/*
 * What a connection does with its socket beside what hiredis does.
 */
#ifndef LEAT_REDIS_CONNECTION_SOCKET_H
#define LEAT_REDIS_CONNECTION_SOCKET_H

#include <stddef.h>

#include "config/config.h"
#include "redis/error.h"

struct redisContext;

/* Close-on-exec, keepalive for TCP, and TLS if the config asks for it. Returns 0, or -1 and why. */
int socket_prepare(struct redisContext *redis, const struct config_redis *config, char *why,
                   size_t size);

/* What is said of a connection that ended without an answer: a tunnel takes connections before it
 * knows whether it gets to the server, and can only close them then. */
#define SOCKET_UNHEARD " before any answer: the log of Redis, or of a TLS tunnel to it, says why"

/* A server that turns a client away sends an error and closes. hiredis passes that on only where it
 * has read it before its own writing failed; else it still lies in the socket. Replaces text by it
 * (or by what TLS has to say) where there is one, else appends SOCKET_UNHEARD; returns the class of
 * what text says then. */
enum redis_error socket_find_last_words(const struct redisContext *redis, char *text, size_t size);

#endif
