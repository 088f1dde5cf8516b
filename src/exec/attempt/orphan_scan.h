/*
 * What the leaders of tasks have left, as the children of this process tell. It is a subreaper:
 * what descends from a task is the task's leader's, or comes to this process when its parent dies.
 * So where the leader is dead, and after that no child of this process is alive that was not
 * started here, nothing of the task lives.
 *
 * One look serves all leaders that were dead when it began, so that the end of many tasks at once
 * takes a few looks and not one for each: the longer a look takes, the more have died until the
 * next. Which were dead is asked first, and the groups of those are killed then, as each will be
 * when its exit is heard of. An orphan that is found alive counts for the leader of its session;
 * for all where nobody knows its session. An answer is noted with the leader. That nothing is left
 * stays true; that something is, is looked at again.
 */
#ifndef LEAT_EXEC_ATTEMPT_ORPHAN_SCAN_H
#define LEAT_EXEC_ATTEMPT_ORPHAN_SCAN_H

#include <stdint.h>

#include "exec/tree/group.h"

struct child_table;
struct guard;

/* None of them owned. */
struct orphan_scan {
    struct child_table *running;  /* their leaders have not been reaped */
    struct child_table *settling; /* nor the one whose exit is being heard of; the others have */
    struct guard *guard;          /* NULL: none */
    int64_t taken_ns, took_ns;    /* CLOCK_BOOTTIME when the last ended, and how long it took */
};

/* What groups ask, without a mark. They are to be of children in one of the two tables; what is
 * left of those that still run is not known. The look is not moved afterwards. */
struct group_orphans orphan_scan_orphans(struct orphan_scan *orphan_scan);

#endif
