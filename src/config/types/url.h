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

/* Sets host, port, socket, user, password, db and tls of *redis, which owns the strings; previous
 * strings are wiped and freed. Returns 0, or -1: why then says what is wrong and what to do,
 * without any part of the URL, or why->failed is set if memory ran out. After an error, call
 * url_clear. */
int url_parse(const char *text, struct config_redis *redis, struct buffer *why);

/* Wipes and frees the strings that url_parse sets, and sets them to NULL. */
void url_clear(struct config_redis *redis);

#endif
