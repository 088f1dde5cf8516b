/*
 * The limit of open files of this process, and what the configured slots need.
 */
#ifndef LEAT_DAEMON_FILE_LIMIT_H
#define LEAT_DAEMON_FILE_LIMIT_H

#include <stdbool.h>
#include <sys/resource.h>

#include "config/config.h"

/* Raises the soft limit to the hard limit. *found is the limit before, which tasks get. Returns 0,
 * or -1 with errno. */
int file_limit_raise(struct rlimit *found);

/* Logs a warning if the limit is too low for all slots at once. has_cgroups: tasks get cgroups. */
void file_limit_warn(const struct config *config, bool has_cgroups);

#endif
