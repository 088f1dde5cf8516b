/*
 * The rights of the process, and of others towards it: tasks cannot look into it, and it can run
 * tasks as the configured user.
 */
#ifndef LEAT_DAEMON_RIGHTS_H
#define LEAT_DAEMON_RIGHTS_H

#include "base/buffer.h"
#include "config/config.h"
#include "exec/start/confine.h"

/* From now on, tasks of the same user can neither trace this process nor read its memory,
 * environment and descriptors, and it dumps no core: all of these may hold the password. Returns 0,
 * or −1 with errno. */
int rights_hide(void);

/* Checks whether this process can run tasks as the configured user, also within the bounds that it
 * has given itself. Returns 0, or an exit code after logging what to do. A user that does not exist
 * is no error here, but a fault of the host when a task starts. */
int rights_check(const struct config *config, const struct confinement *confinement);

/* If tasks run as another user, bounds the ids that this process can change to, once; not as root,
 * whom nothing bounds, and not with [task] no_new_privileges = no. If it fails, logs a warning and
 * goes on. */
void rights_confine(const struct config *config, struct confinement *confinement);

/* Appends those of [task] user and group, separated by commas, to which a leatd with this
 * configuration, and the user of this process, has bounded itself. Returns 0, or −1 without memory.
 */
int rights_list_bounded(const struct config *config, struct buffer *keys);

/* Warns about a password in a file that all users can read, about one that is sent to another host
 * without TLS, and about files for TLS that this process cannot read. */
void rights_warn(const struct config *config);

#endif
