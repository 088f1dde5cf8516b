/*
 * leat doctor: the kinds of findings, their consequences and their repairs.
 */
#include <string.h>

#include "cli/doctor/doctor.h"

static const struct doctor_kind kinds[] = {
    {"replica", "a server that is not a master",
     "This Redis is a replica: it accepts no changes, and its data may be old.", NULL,
     "Point [redis] to the master.", false},
    {"eviction", "a policy that evicts keys",
     "When its memory is full, Redis may evict tasks, or the whole queue.", NULL,
     "Set maxmemory-policy to noeviction.", false},
    {"no-persistence", "a server without persistence", "A restart of Redis loses all tasks.", NULL,
     "Set appendonly to yes.", false},
    {"snapshots-only", "a server without an append-only file",
     "A crash of Redis loses all changes since the last snapshot.", NULL, "Set appendonly to yes.",
     false},
    {"saves-fail", "a server whose saves fail",
     "Redis could not write to its disk, and may refuse all changes until it can.", NULL,
     "See the log of Redis; its disk may be full.", false},
    {"refused-data", "a server that refused its own data",
     "Redis refused commands of its append-only file, or of its master: tasks may be lost, and "
     "tasks that ended may run again.",
     NULL,
     "See the log of Redis. The user default must have all rights, also if it is off; leat.acl "
     "shows how. A restart of Redis without errors, or CONFIG RESETSTAT, ends this finding.",
     false},
    {"lone-master", "a master that accepts writes without its replicas",
     "If this master is cut off together with a worker, the worker's tasks may run a second time "
     "beside the first once the sentinels have chosen another master.",
     NULL, "Set min-replicas-to-write of Redis to 1; see FAILOVER in leatd(8).", true},
    {"no-info", "INFO is not allowed", "Persistence could not be checked.", NULL,
     "Allow this user to run INFO.", true},
    {"open", "a default user that may do something",
     "Every client that can reach this Redis may do this, although the configuration has a "
     "password. Whoever may add tasks can run commands on the workers.",
     NULL, "Turn the user default off; leat.acl shows how.", false},
    {"no-password", "Redis asks for no password",
     "Every client that can reach this Redis may do this. Whoever may add tasks can run commands "
     "on the workers.",
     NULL, "Use the Redis users of leat.acl.", true},
    {"library-missing", "the function library is missing",
     "Producers can only enqueue with XADD, and no worker can take tasks.",
     "loads the library of this leat", "Start a worker, or have an administrator run leat init.",
     false},
    {"library-old", "the function library is old",
     "Functions that this leat needs may be missing. Workers of this version replace it if they "
     "may.",
     "loads the library of this leat", "Start a worker of this version.", false},
    {"library-new", "the function library is newer than this leat",
     "Other hosts were upgraded first. The newer library also serves this version.", NULL,
     "Upgrade leat on this host.", false},
    {"library-differs", "the function library has other code under the same version",
     "Redis runs code that this leat was not built with. Whoever can replace the library can run "
     "code with the rights of all its callers.",
     "loads the library of this leat", "Find out who loaded it and what it does.", false},
    {"version-skew", "workers of several versions",
     "Workers of several versions share the queue. This should last only during an upgrade.", NULL,
     "Upgrade the older ones.", false},
    {"conf-differs", "a setting that differs from the configuration file",
     "The queue's shared setting overrides the file, which only sets it for the first worker.",
     NULL, "leat conf --apply makes the file's values the queue's.", true},
    {"foreign", "another consumer group on the stream",
     "leat deletes finished tasks, so another group would miss them. No worker of leat starts "
     "here, and no task was examined.",
     NULL, "Remove that group (XGROUP DESTROY), or use another stream.", false},
    {"other-group", "the queue belongs to another consumer group",
     "Workers use another group than the configuration. No task was examined.", NULL,
     "Change [queue] group in the file.", false},
    {"unbegun", "no worker has ever run here", "There may be nothing to examine yet.", NULL, NULL,
     true},
    {"group", "the consumer group is missing",
     "No task is read until a worker starts and creates the group again.",
     "creates it, from the first entry on, and keeps workers from starting tasks for one lease",
     NULL, false},
    {"exhausted", "a stream to which nothing can be added",
     "A producer chose the greatest possible id for an entry. Redis refuses every entry after it.",
     "creates the stream again, once it is empty",
     "Wait until workers have run its tasks, or cancel them.", false},
    {"conf", "an invalid shared setting", "The default is used, or none.",
     "removes it, if it is a number that only leat sets",
     "Set it with leat conf; for protocol, upgrade leat on this host.", false},
    {"consumer", "a consumer whose worker is gone",
     "Its pending tasks do not run until another worker takes them over.",
     "requeues its tasks (a claimed one counts as a crash), then removes it",
     "Start a worker, which takes over its tasks.", false},
    {"dangling", "a pending entry that was deleted",
     "Somebody deleted or trimmed the entry after a worker had read it, so the task cannot run.",
     "removes it; a task that was claimed becomes a dead letter with the cause vanished", NULL,
     false},
    {"acked", "an entry that was acknowledged but not deleted",
     "Nobody will run this task: somebody acknowledged it (XACK), or moved the group past it.",
     "REQUEUES THE TASK, so that it runs; a claimed one is returned to its worker",
     "If the task was done nevertheless, XDEL its entry first.", false},
    {"vanished", "a running task without an entry",
     "Its entry was deleted, with everything that pointed to it.",
     "makes it a dead letter with the cause vanished", NULL, false},
    {"moved", "a lease record that points nowhere", "It takes up memory.", "removes it", NULL,
     false},
    {"record", "an unreadable lease record", "It takes up memory.", "removes it", NULL, false},
    {"unrecorded", "a running task without a lease record",
     "Somebody deleted its record, or the worker hangs and has not claimed it yet. Until the "
     "record is there, the task's end is not accepted, and if the worker is lost, the task runs "
     "again without counting a crash.",
     NULL, "Wait: the worker's next renewal restores it, within a third of the lease.", false},
    {"unnamed", "a running task that does not hold its label or unique key",
     "Another task with the same label or key can be enqueued, and would run beside it.",
     "registers the label and the key for it again",
     "Wait: the worker's next renewal does the same, within a third of the lease.", false},
    {"lane-count", "a lane with a wrong running counter",
     "If the lane has max_running, it starts too few or too many tasks.",
     "recounts it, and wakes the lane up", NULL, false},
    {"counter", "a figure that is no number", "It counts as 0.", "removes it", NULL, false},
    {"uncounted", "lane counters were not examined",
     "Too many tasks run to count them in one step.", NULL,
     "Run leat doctor again when fewer tasks run.", true},
    {"unreadable", "an unreadable task in the requeue stream",
     "It can never run. The worker that claims it makes it a dead letter.",
     "makes it a dead letter with the cause damaged and what is left of it", NULL, false},
    {"damaged", "an unreadable waiting task", "It can never run.",
     "makes it a dead letter with the cause damaged and what is left of it", NULL, false},
    {"waiting", "a waiting task without a place",
     "It has no lane, no due time, and follows no other task, so it would wait forever.",
     "makes it ready, in its lane if it has one", NULL, false},
    {"delayed", "a due time without a task, or one that never comes",
     "Without a task nothing happens at that time. A task that is never due never starts.",
     "removes it; its task becomes ready", NULL, false},
    {"laned", "a place in a lane that is wrong",
     "It has no task, or a score, which hides the tasks of other lanes.",
     "removes it, or the score", NULL, false},
    {"lost-lane", "a lane whose turn never comes", "Its tasks wait forever.",
     "gives the lane its turn again", NULL, false},
    {"empty-lane", "a lane without a task", "It delays tasks of other lanes.",
     "removes it from the turns", NULL, false},
    {"name", "a unique key or label without a task",
     "An enqueue with this key or label adds nothing, and returns a task that does not exist.",
     "releases it, or sets the time when it ends; a task that follows with this key becomes ready",
     NULL, false},
    {"holder", "a unique key whose task is marked as running, but is not",
     "An enqueue with unique_next waits for a task that does not run.", "corrects the mark", NULL,
     false},
    {"cancel", "a cancellation of a task that is gone", "It takes up memory.", "removes it", NULL,
     false},
    {"index", "a wrong entry of the index of tasks",
     "Commands do not find the task by its id, or Redis keeps an entry of a task that is gone.",
     "corrects it",
     "While an index is being built, as after an upgrade, wait: the next scan of a worker "
     "completes it.",
     false},
    {"awaited", "an announced wait that is over", "It takes up memory.", "removes it", NULL, false},
    {"other", "a kind of problem that this leat does not know",
     "The library is newer than this leat.", NULL, "Upgrade leat on this host.", false},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

size_t doctor_kind_count(void)
{
    return KIND_COUNT;
}

const struct doctor_kind *doctor_kind_at(size_t index)
{
    return &kinds[index];
}

const struct doctor_kind *doctor_kind_of(struct bytes name)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (bytes_equal(name, kinds[i].name)) {
            return &kinds[i];
        }
    }
    return &kinds[KIND_COUNT - 1];
}
