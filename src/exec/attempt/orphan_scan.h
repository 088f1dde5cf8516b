/*
 * Finds out what the leaders of tasks have left alive, from the list of this process's children.
 * This process is a subreaper: a descendant of a task is a descendant of the task's leader, or
 * becomes a child of this process when its parent dies. So if the leader is dead, and this process
 * then has no living child that it did not start itself, nothing of the task lives.
 *
 * One scan serves all leaders that were dead when it began. If many tasks end at once, a few scans
 * are enough: the longer a scan takes, the more leaders have died before the next. A scan first
 * finds the dead leaders and kills their groups, as will happen for each when its exit is handled.
 * An orphan that it finds alive counts for the leader of its session, or for all leaders if its
 * session is unknown. The result is noted with the leader. "Nothing is left" stays true; any other
 * result is checked again.
 */
#ifndef LEAT_EXEC_ATTEMPT_ORPHAN_SCAN_H
#define LEAT_EXEC_ATTEMPT_ORPHAN_SCAN_H

#include <stdint.h>

#include "exec/tree/group.h"

struct child_table;
struct guard;

/* It owns none of these. */
struct orphan_scan {
    struct child_table *running;  /* children whose leaders are not reaped */
    struct child_table *settling; /* children whose leaders are reaped, or being reaped now */
    struct guard *guard;          /* NULL: none */
    int64_t ended_ns, took_ns; /* of the last scan: CLOCK_BOOTTIME of its end, and its duration */
};

/* Returns the functions that exec/tree/group.h calls, without a tag. They may be asked about
 * children in one of the two tables; for those that still run, the answer is "unknown". The struct
 * must not move afterwards. */
struct group_orphans orphan_scan_orphans(struct orphan_scan *orphan_scan);

#endif
