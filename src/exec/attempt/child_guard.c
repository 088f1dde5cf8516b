/*
 * Computes a child's deadlines and tag for the guards.
 */
#include "exec/attempt/child_guard.h"

#include "exec/tree/env_tag.h"

#include "base/clock.h"

/* How long a start may block the daemon, which cannot renew leases meanwhile: this share of the
 * time that is left of the lease, within these bounds. */
#define START_SHARE 8
#define START_LEAST_NS CLOCK_NS_PER_S
#define START_MOST_NS (10 * CLOCK_NS_PER_S)

/* Returns the deadline of the process: the earliest lease of its attempts, minus the margin. */
static int64_t deadline_ns(struct child *child)
{
    int64_t first_ns = GUARD_NEVER;
    for (size_t i = 0; i < child->count; i++) {
        int64_t lease_ns = child_attempt(child, i)->lease_deadline_ns;
        if (lease_ns > 0 && lease_ns < first_ns) {
            first_ns = lease_ns;
        }
    }
    return first_ns == GUARD_NEVER ? first_ns : first_ns - child->host->guard_margin_ns;
}

static int64_t start_deadline_ns(struct child *child)
{
    int64_t now_ns = clock_boot_ns(), end_ns = deadline_ns(child);
    int64_t most_ns = (end_ns - now_ns) / START_SHARE;
    most_ns = most_ns > START_LEAST_NS ? most_ns : START_LEAST_NS;
    most_ns = most_ns < START_MOST_NS ? most_ns : START_MOST_NS;
    return end_ns < now_ns + most_ns ? end_ns : now_ns + most_ns;
}

uint64_t child_guard_tag(const struct child *child)
{
    uint64_t worker = child->host->worker_tag;
    return worker && child->count == 1 ? env_tag_attempt(worker, child->attempt.task) : 0;
}

struct guard_entry *child_guard_arm(struct child *child, const struct task_cgroup *task_cgroup)
{
    struct guard *guard = child->host->guard;
    if (guard && task_cgroup &&
        guard_cgroup_version(guard, child->slot_index) != task_cgroup_version(task_cgroup)) {
        /* if this fails, the guards kill the processes that they find in /proc */
        (void)guard_set_cgroup(guard, child->slot_index, task_cgroup_kill_fd(task_cgroup),
                               task_cgroup_events_fd(task_cgroup),
                               task_cgroup_version(task_cgroup));
    }
    return guard ? guard_arm(guard, child->slot_index, start_deadline_ns(child),
                             child_guard_tag(child))
                 : NULL;
}

void child_guard_renew(struct child *child)
{
    if (child->host->guard) {
        guard_renew(child->host->guard, child->slot_index, deadline_ns(child));
    }
}

void child_guard_reaps(struct child *child)
{
    if (child->host->guard) {
        guard_reaps(child->host->guard, child->slot_index);
    }
}

bool child_guard_is_taken(const struct child *child)
{
    return child->host->guard && guard_has_taken(child->host->guard, child->slot_index);
}

void child_guard_release(struct child *child)
{
    if (child->host->guard) {
        guard_disarm(child->host->guard, child->slot_index);
    }
}
