/*
 * Descriptors 0, 1 and 2. Who starts a program may have closed them; then what it opens first, a
 * connection to Redis for instance, gets their numbers, and what is written to stdout or stderr.
 */
#ifndef LEAT_BASE_PROCESS_STANDARD_FDS_H
#define LEAT_BASE_PROCESS_STANDARD_FDS_H

#include <stdbool.h>

/* Opens /dev/null for those that are closed. usable: they read as empty and take what is written;
 * else reading and writing fail as with closed ones. Returns 0, or -1 with errno. */
int standard_fill(bool usable);

#endif
