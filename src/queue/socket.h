/*
 * What a connection does with its socket beside what hiredis does.
 */
#ifndef LEAT_QUEUE_SOCKET_H
#define LEAT_QUEUE_SOCKET_H

#include <stddef.h>

#include "config/config.h"
#include "queue/error.h"

/* Close-on-exec, and keepalive for TCP. Returns 0, or -1 with errno. */
int socket_set_options(int fd, const struct config_redis *config);

/* What is said of a connection that ended without an answer: a tunnel takes connections before it
 * knows whether it gets to the server, and can only close them then. */
#define SOCKET_UNHEARD " before any answer: where a TLS tunnel leads to Redis, its log says why"

/* A server that turns a client away sends an error and closes. hiredis passes that on only where it
 * has read it before its own writing failed; else it still lies in the socket. Replaces text by it
 * where there is one, else appends SOCKET_UNHEARD; returns the class of what text says then. */
enum redis_error socket_find_last_words(int fd, char *text, size_t size);

#endif
