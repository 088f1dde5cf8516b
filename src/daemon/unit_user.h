/*
 * For leatd -t: the check runs as the user that systemd starts the queue's leatd as, so that it
 * finds files that this user may not read.
 */
#ifndef LEAT_DAEMON_UNIT_USER_H
#define LEAT_DAEMON_UNIT_USER_H

#include <stddef.h>

/* If this process is root and path is /etc/leat/QUEUE.ini, changes to User= and Group= of the unit
 * leatd@QUEUE, or to the user leat if systemd does not know that unit. Changes nothing for other
 * paths and NULL, if that unit runs as root, and if there is no user leat. Writes the user's name,
 * or "", into name. Returns 0, or an exit code after logging the error. */
int unit_user_become(const char *path, char *name, size_t size);

#endif
