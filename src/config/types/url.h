/*
 * The URL of a Redis server, as people give it in the environment or on the command line:
 *
 *     redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]      rediss:// for TLS
 *     unix:///PATH[?db=DB]                            also unix:/PATH, unix://USER:PASSWORD@/PATH
 *
 * Each part may be percent-encoded; a password must encode the characters / ? # @ : %.
 */
#ifndef LEAT_CONFIG_TYPES_URL_H
#define LEAT_CONFIG_TYPES_URL_H

#include "base/buffer.h"
#include "config/config.h"

/* Sets host, port, socket, user, password, db and tls of *redis, which owns the strings; the first
 * four strings may hold others, which are wiped and freed. Returns 0, or -1: why then says what is
 * wrong and what to do, never with a part of the URL, or is failed for want of memory. What *redis
 * then holds is for url_clear. */
int url_parse(const char *text, struct config_redis *redis, struct buffer *why);

/* Wipes and frees the strings that url_parse sets, and makes them NULL. */
void url_clear(struct config_redis *redis);

#endif
