/*
 * The user and groups that tasks run as: [task] user and group. They are looked up when the config
 * is loaded, since a lookup may use the network and must not happen between vfork and exec.
 */
#ifndef LEAT_EXEC_START_IDENTITY_H
#define LEAT_EXEC_START_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "config/config.h"

struct identity {
    char *user, *home; /* owned; for USER and HOME; NULL: the daemon's own user */
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* owned; supplementary groups other than the primary one alone */
    size_t group_count;
    bool other;        /* differs from the daemon's: each task has to change to it */
    bool disarm;       /* the daemon has capabilities that tasks must not inherit */
    char missing[160]; /* why this host has no such user or group; or "" */
};

/* Looks up the user and groups. Returns NULL without memory. An unknown user or group is no error;
 * it sets ->missing. */
struct identity *identity_new(const struct config_task *task);
void identity_free(struct identity *identity);

/* Lists what this process lacks to run and end such tasks: "CAP_SETUID, CAP_KILL"; cut to size; ""
 * if it lacks nothing. */
void identity_lacks(const struct identity *identity, char *text, size_t size);

/* Changes to the user and groups, in a child between vfork and exec. Returns 0, or -1 with errno.
 */
int identity_become(const struct identity *identity);

#endif
