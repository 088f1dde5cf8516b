/*
 * Which file systems wait for another machine or program, and may so let whoever touches them hang.
 */
#ifndef LEAT_BASE_PROCESS_MOUNTS_H
#define LEAT_BASE_PROCESS_MOUNTS_H

#include <stdbool.h>

/* True where the path is on such a file system, by itself or through symbolic links. Asks the table
 * of mounts first, so that a path that is plainly on one is not touched. */
bool mounts_is_remote(const char *path);

/* A descriptor on which a change of the table is a writable event (an error, for poll), or -1. */
int mounts_open(void);

#endif
