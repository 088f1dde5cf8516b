/*
 * The service of a queue on this host: its name, which is that of its user, its group and its
 * folders below /run, /var/lib and /var/log. leat init --service makes the user.
 */
#ifndef LEAT_CONFIG_FILE_SERVICE_H
#define LEAT_CONFIG_FILE_SERVICE_H

#include <stdbool.h>

#include "base/buffer.h"

/* The user of queues that have none of their own, and the group that all users of queues have. */
#define SERVICE_SHARED "leat"

/* Folders that have one for each service. */
#define SERVICE_LOGS "/var/log"
#define SERVICE_RUNTIME "/run"

#define SERVICE_NAME_SIZE 32 /* the longest name of a user has 31 bytes */

/* Returns true if the name of the file QUEUE.ini can be that of a unit's instance: 1 to 100 of the
 * characters A-Z a-z 0-9 _ . : @ -, without a dot at its beginning. */
bool service_is_queue(const char *queue);

/* Writes leat-QUEUE; or, if that is no portable name of a user, is too long, or is used for
 * something else, leat_ with the beginning of the mapped name and a hash of the whole one. No two
 * queues have the same name but by an accident of the hash. */
void service_name(const char *queue, char name[SERVICE_NAME_SIZE]);

/* Writes TOP/NAME into path, NUL-terminated, for the queue of a file in /etc/leat. Returns 0; or -1
 * if there is no such folder, if the file is another one or NULL, or without memory. */
int service_folder(const char *top, const char *file, struct buffer *path);

#endif
