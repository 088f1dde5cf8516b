/*
 * Computes a child's deadlines and tag for the guards.
 */
#include "exec/attempt/child.h"

#include "base/clock.h"
#include "config/lease_rule.h"
#include "exec/tree/env_tag.h"

/* Returns the deadline of the process: the earliest lease of its attempts, minus the guards'
 * margin. */
static int64_t deadline_ns(struct child *child)
{
    int64_t first_ns = GUARD_NEVER;
    for (size_t i = 0; i < child->count; i++) {
        int64_t lease_ns = child_attempt(child, i)->lease_deadline_ns;
        if (lease_ns > 0 && lease_ns < first_ns) {
            first_ns = lease_ns;
        }
    }
    return first_ns == GUARD_NEVER
               ? first_ns
               : first_ns - lease_rule_guard_ms(child->host->lease_ms) * CLOCK_NS_PER_MS;
}

static int64_t start_deadline_ns(struct child *child)
{
    int64_t now_ns = clock_boot_ns();
    int64_t left_ms = (deadline_ns(child) - now_ns) / CLOCK_NS_PER_MS;
    return now_ns + lease_rule_start_ms(left_ms) * CLOCK_NS_PER_MS;
}

uint64_t child_guard_tag(const struct child *child)
{
    uint64_t worker = child->host->worker_tag;
    return worker && child_task(child) ? env_tag_attempt(worker, child->attempt.task) : 0;
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

void child_renew(struct child *child)
{
    if (child->host->guard) {
        guard_renew(child->host->guard, child->slot_index, deadline_ns(child));
    }
}

void child_hasten(struct child *child)
{
    if (child->host->guard) {
        guard_hasten(child->host->guard, child->slot_index, deadline_ns(child));
    }
}

void child_reaps(struct child *child)
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
