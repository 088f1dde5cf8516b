/*
 * Bounds the capabilities with which leatd runs tasks as another user: without a bound, CAP_SETUID
 * and CAP_SETGID make whoever controls leatd root. A filter of system calls lets this process, and
 * all that it starts, change to the configured user and group only, and create no user namespace,
 * in which CAP_SETUID would name any user. The filter holds until the process ends; programs that
 * it starts have it too.
 */
#ifndef LEAT_EXEC_START_CONFINE_H
#define LEAT_EXEC_START_CONFINE_H

#include "exec/start/identity.h"

struct confinement {
    bool active;
    uid_t uid;
    gid_t gid;
    size_t group_count;
};

/* Installs the filter for this user and group. Their supplementary groups are bounded in number
 * only: a filter cannot read them. Also sets no_new_privs, which filters need. The process must
 * have one thread. Returns 0; or -1 with errno, and nothing is bounded then. */
int confine(struct confinement *confinement, const struct identity *identity);

/* Returns true if the filter lets tasks change to this user, and if there is no filter. */
bool confinement_allows(const struct confinement *confinement, const struct identity *identity);

#endif
