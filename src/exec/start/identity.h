/*
 * As whom tasks run: [task] user and group. Looked up when the config is taken, since that may ask
 * a network and must not happen between vfork and exec.
 */
#ifndef LEAT_EXEC_START_IDENTITY_H
#define LEAT_EXEC_START_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "config/config.h"

struct identity {
    char *user, *home; /* owned; for USER and HOME; NULL: of the daemon's own user */
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* owned; the supplementary ones */
    size_t group_count;
    bool other;        /* not what the daemon is: to be taken on by each task */
    bool disarm;       /* the daemon has capabilities that the task would inherit */
    char missing[160]; /* why there is no such user here, else "" */
};

/* Returns NULL without memory. What this host does not know is told in ->missing. */
struct identity *identity_new(const struct config_task *task);
void identity_free(struct identity *identity);

/* What this process cannot do that running and ending such tasks needs: "CAP_SETUID and CAP_KILL";
 * cut to size, "" for nothing. */
void identity_lacks(const struct identity *identity, char *text, size_t size);

/* Takes it on; for a child between vfork and exec. Returns 0, or -1 with errno. */
int identity_become(const struct identity *identity);

#endif
