/*
 * Finds out which paths are on file systems that depend on another machine or program. Access to
 * them may hang.
 */
#ifndef LEAT_BASE_PROCESS_MOUNTS_H
#define LEAT_BASE_PROCESS_MOUNTS_H

#include <stdbool.h>

/* True if the path is on such a file system, directly or through symbolic links. Looks at the table
 * of mounts first, so that it does not touch a path that is obviously on one. */
bool mounts_is_remote(const char *path);

/* Returns a descriptor that becomes writable (POLLERR for poll) when the table of mounts changes,
 * or -1. */
int mounts_open(void);

#endif
