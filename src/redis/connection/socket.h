/*
 * Socket options that hiredis does not set, and the last words of a server that closed.
 */
#ifndef LEAT_REDIS_CONNECTION_SOCKET_H
#define LEAT_REDIS_CONNECTION_SOCKET_H

#include <stddef.h>

#include "config/config.h"
#include "redis/error.h"

struct redisContext;

/* Sets close-on-exec and TCP keepalive, and starts TLS if configured. Returns 0, or -1 and why. */
int socket_prepare(struct redisContext *redis, const struct config_redis *config, char *why,
                   size_t size);

/* The hint for a connection that ended without an answer: a tunnel accepts connections before it
 * knows whether it can reach the server, and can then only close them. */
#define SOCKET_UNHEARD " before any answer: the log of Redis, or of a TLS tunnel to it, says why"

/* A server that rejects a client sends an error and closes. If hiredis failed to write before it
 * read that error, the error still waits in the socket. Replaces text by that error, or by the
 * error of TLS; appends SOCKET_UNHEARD if there is neither. Returns the class of the new text. */
enum redis_error socket_find_last_words(const struct redisContext *redis, char *text, size_t size);

#endif
