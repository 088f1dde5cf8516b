/*
 * Where cgroup v2 is mounted, and which group there this process was started in: the service's own.
 */
#ifndef LEAT_EXEC_CGROUP_HIERARCHY_H
#define LEAT_EXEC_CGROUP_HIERARCHY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hierarchy {
    char path[PATH_MAX]; /* of the own group's directory; "": there is none to be seen */
    char name[PATH_MAX +
              32]; /* the group, for comparing with earlier ones of this boot; "-": none */
};

/* To be asked before the process moves to another group. */
void hierarchy_find(struct hierarchy *hierarchy);

/* The same from the texts of /proc/self/mountinfo and /proc/self/cgroup. path and inside (the group
 * as the second text has it): room for PATH_MAX, "" where they tell of no such group. Changes the
 * first text. Returns how much of the path is where the hierarchy is mounted. */
size_t hierarchy_locate(char *mounts, const char *groups, char *path, char *inside);

/* systemd has left the group to this service, or it belongs to this process's user, who is not
 * root. */
bool hierarchy_is_delegated(const char *path);

/* No process is in the group or below it but the named ones. A group that cannot be read to the
 * end is not alone; one that is gone is. except: a group below, "NAME", that is not looked at; or
 * NULL. Reads as many files as there are groups. */
bool hierarchy_is_alone(const char *path, const char *except, const pid_t *own, size_t count);

/* Removes the groups below, however deep. Returns 0, or -1 with errno where any is left, as one
 * that somebody is in. */
int hierarchy_clear(int directory);

#endif
