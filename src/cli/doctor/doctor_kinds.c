/*
 * leat doctor: what there is to find, what each finding means and what is done about it.
 */
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/lib/reply_fields.h"

static const struct doctor_kind kinds[] = {
    {"replica", "a server that is no master",
     "This Redis is a replica: nothing can be changed here, and what it shows may be old.", NULL,
     "Point [redis] to the master.", false},
    {"eviction", "a policy that evicts keys",
     "Redis may throw away tasks, or all of the queue, when its memory is full.", NULL,
     "Set maxmemory-policy to noeviction.", false},
    {"no-persistence", "a server that keeps nothing on disk",
     "A restart of Redis loses every task.", NULL, "Set appendonly to yes.", false},
    {"snapshots-only", "a server without an append-only file",
     "A crash of Redis loses what came after its last snapshot.", NULL, "Set appendonly to yes.",
     false},
    {"saves-fail", "a server that could not write to its disk",
     "Redis could not save, and may refuse every change until it can.", NULL,
     "See the log of Redis; its disk may be full.", false},
    {"no-info", "a server that does not tell", "INFO was refused: persistence was not looked at.",
     NULL, "Let this user run INFO.", true},
    {"library-missing", "the function library is missing",
     "Nobody can enqueue but by XADD, and no worker can take tasks.",
     "loads the library of this leat", "Start a worker, or let an administrator load it.", false},
    {"library-old", "the function library is old",
     "Workers of this version replace it where they may; functions of this leat are missing.",
     "loads the library of this leat", "Start a worker of this version.", false},
    {"library-new", "the function library is newer than this leat",
     "Others have been upgraded already; the newer library serves this version too.", NULL,
     "Upgrade leat on this host.", false},
    {"library-differs", "the function library has another text under the same version",
     "What Redis runs is not what this leat was built with: whoever replaces the library can run "
     "code as everyone who calls it.",
     "loads the library of this leat", "Find out who loaded it, and what it does.", false},
    {"version-skew", "workers of several versions",
     "Workers of several versions share the queue, which is for the time of an upgrade.", NULL,
     "Upgrade the rest.", false},
    {"conf-differs", "a setting that differs from the configuration file",
     "What the queue's workers agreed on rules; the file has no say any more.", NULL,
     "Set it by leat conf, or change the file.", false},
    {"foreign", "another group on the stream",
     "leat deletes what it has finished, so another group would miss tasks. No worker of leat "
     "begins here, and nothing else was looked at.",
     NULL, "Remove that group (XGROUP DESTROY), or choose another stream.", false},
    {"other-group", "the queue belongs to another group",
     "Workers use another group than the configuration names. Nothing else was looked at.", NULL,
     "Change [queue] group in the file.", false},
    {"unbegun", "no worker has ever begun here", "There may be nothing to look at yet.", NULL, NULL,
     true},
    {"group", "the group is missing",
     "Workers make the group again when they come; until then no task is read.",
     "makes it, from the first entry on, and keeps workers from beginning for one lease", NULL,
     false},
    {"conf", "a setting that makes no sense", "A default counts, or none.", NULL,
     "Set it by leat conf.", false},
    {"consumer", "a consumer that is gone",
     "What is pending for them is run by nobody until another worker finds it.",
     "puts their tasks into the queue again (begun ones count as a crash), then removes them",
     "Start a worker: it takes over what they left.", false},
    {"dangling", "a pending entry that was deleted",
     "Somebody deleted or trimmed entries that workers had read; their tasks cannot run.",
     "settles them: a task that had begun becomes a dead letter, cause vanished", NULL, false},
    {"acked", "an entry that was acknowledged but not deleted",
     "Nobody will run these tasks: somebody else acknowledged them (XACK), or moved the group on.",
     "PUTS THEM INTO THE QUEUE AGAIN, to run; begun ones are given back to their worker",
     "Where such a task was done after all, XDEL its entry first.", false},
    {"vanished", "a running task without an entry",
     "Their entries were deleted with everything that pointed to them.",
     "makes each a dead letter, cause vanished", NULL, false},
    {"moved", "the record of an attempt that leads nowhere", "They take up room.", "removes them",
     NULL, false},
    {"record", "a record that cannot be read", "They take up room.", "removes them", NULL, false},
    {"lane-count", "a lane that is counted wrongly",
     "A lane with max_running starts too few tasks, or too many.",
     "counts again, and wakes the lane", NULL, false},
    {"uncounted", "lane counters were not looked at",
     "Too many tasks run to count them in one step.", NULL, "Look again when fewer run.", true},
    {"damaged", "a waiting task that cannot be read", "They can never run.",
     "makes each a dead letter, cause damaged, with what is left of it", NULL, false},
    {"waiting", "a waiting task that nothing leads to",
     "They are in no lane, have no time and follow nobody: they would wait for ever.",
     "puts them up, in their lane where they have one", NULL, false},
    {"delayed", "a due time without a task", "Nothing happens when they come.", "removes them",
     NULL, false},
    {"laned", "a place in a lane without a task", "They are passed over.", "removes them", NULL,
     false},
    {"lost-lane", "a lane whose turn never comes", "Their tasks wait for ever.",
     "puts the lane into the row again", NULL, false},
    {"empty-lane", "a lane without a task", "They keep tasks of other lanes from starting at once.",
     "removes them from the row", NULL, false},
    {"name", "a unique key or id without a task",
     "An enqueue with that key or id is answered with a task that is not there, and adds none.",
     "lets them go; a task that was kept as follow-up starts", NULL, false},
    {"holder", "a unique key whose task is said to run, and does not",
     "An enqueue with unique_next is kept behind it.", "corrects that", NULL, false},
    {"cancel", "the cancellation of a task that is gone", "They take up room.", "removes them",
     NULL, false},
    {"awaited", "a wait that is over", "They take up room.", "removes them", NULL, false},
    {"other", "something that this leat does not know", "The library is newer than this leat.",
     NULL, "Upgrade leat on this host.", false},
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
