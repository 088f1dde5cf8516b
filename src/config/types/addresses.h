/*
 * Lists of servers: HOST:PORT, several with commas or white space between.
 */
#ifndef LEAT_CONFIG_TYPES_ADDRESSES_H
#define LEAT_CONFIG_TYPES_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { ADDRESSES_HOST_SIZE = 256 }; /* with the NUL */

/* Makes *list (NULL-terminated) what text says. Returns 0, or -1 with the reason in why. */
int addresses_set(char ***list, const char *text, struct buffer *why);

/* Takes HOST:PORT or [IPv6]:PORT apart; host has ADDRESSES_HOST_SIZE bytes. Returns 0, or -1 where
 * it is neither. */
int addresses_split(const char *text, char *host, int64_t *port);

#endif
