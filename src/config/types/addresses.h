/*
 * Lists of servers: HOST:PORT, separated by commas or white space.
 */
#ifndef LEAT_CONFIG_TYPES_ADDRESSES_H
#define LEAT_CONFIG_TYPES_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Both include the NUL. A socket is the size of sun_path: hiredis cuts longer paths, and would
 * connect to another socket. */
enum { ADDRESSES_HOST_SIZE = 256, ADDRESSES_SOCKET_SIZE = 108 };

/* Appends the addresses in text to the NULL-terminated *list. Returns 0, or -1 with the reason in
 * why. */
int addresses_set(char ***list, const char *text, struct buffer *why);

/* Splits HOST:PORT or [IPv6]:PORT; host has room for ADDRESSES_HOST_SIZE bytes. Returns 0, or -1 if
 * text is neither. */
int addresses_split(const char *text, char *host, int64_t *port);

#endif
