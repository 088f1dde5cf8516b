/*
 * What the process itself may and may not: nobody looks into it, and it can run tasks as the user
 * that its config names.
 */
#ifndef LEAT_DAEMON_RIGHTS_H
#define LEAT_DAEMON_RIGHTS_H

#include "config/config.h"

/* From now on tasks of the same user can neither read this process's memory, environment and
 * descriptors nor trace it, and it leaves no core: all of these may hold the password. Returns 0,
 * or -1 with errno. */
int rights_hide(void);

/* Whether tasks can be run as configured; else says in the log what to do, and returns -1. A user
 * that does not exist is no such case, but the host's fault when a task is to be run. */
int rights_check(const struct config *config);

/* Warns where a password stands in a file that all users can read. */
void rights_warn(const struct config *config);

#endif
