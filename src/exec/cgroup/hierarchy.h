/*
 * Finds the cgroup v2 in which this process was started, the service's own, and looks into cgroups
 * below it.
 */
#ifndef LEAT_EXEC_CGROUP_HIERARCHY_H
#define LEAT_EXEC_CGROUP_HIERARCHY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hierarchy {
    char path[PATH_MAX]; /* of the own cgroup's directory; "": none is visible */
    /* names the own cgroup, for comparing it with those of earlier workers since boot; "-": none */
    char name[PATH_MAX + 32];
};

/* Finds the own cgroup. To be called before the process moves to another one. */
void hierarchy_find(struct hierarchy *hierarchy);

/* Makes it the hierarchy of the cgroup above, if this one has that name. */
void hierarchy_leave(struct hierarchy *hierarchy, const char *name);

/* Does the same with the texts of /proc/self/mountinfo and /proc/self/cgroup. Sets path, and sets
 * inside to the cgroup as the second text names it; both have room for PATH_MAX bytes and become ""
 * if there is no such cgroup. Changes the first text. Returns the length of the mount point, with
 * which the path begins. */
size_t hierarchy_locate(char *mounts, const char *groups, char *path, char *inside);

/* Returns true if systemd has delegated the cgroup to this service, or if it belongs to this
 * process's user, who is not root. */
bool hierarchy_is_delegated(const char *path);

/* Returns true if no process but the named ones is in the cgroup or below it. If a cgroup cannot be
 * read to the end it returns false; a cgroup that is gone counts as empty. except names a cgroup
 * directly below that is skipped, or is NULL. Reads one file per cgroup. */
bool hierarchy_is_alone(const char *path, const char *except, const pid_t *own, size_t count);

/* Removes all cgroups below, at any depth. Returns 0, or -1 with errno if one is left, for instance
 * since a process is in it. */
int hierarchy_clear(int directory);

#endif
