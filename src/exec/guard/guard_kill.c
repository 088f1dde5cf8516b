/*
 * A guard's rounds of killing: the cgroups, leaders, sessions and strays of tasks that are due.
 */
#include "exec/guard/guard_kill.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/control_file.h"
#include "base/process/descriptor.h"
#include "base/process/proc.h"
#include "base/process/proc_tree.h"
#include "exec/tree/env_tag.h"

#define TO_GROUP 4U /* PIDFD_SIGNAL_PROCESS_GROUP */

enum {
    STRAYS_FIRST = 4, /* rounds that spare the leader while others of its session live, since it
                         keeps the session's number from being reused */
    CLEAN_ROUNDS = 2, /* rounds that must find nothing: one may miss a process that forks fast */
    BLANK_ROUNDS = 7, /* rounds (a tenth of a second) that wait for the tag of a process that is
                         just executing a program */
};

struct target {
    uint64_t word; /* of the entry when it was taken; 0: nothing to kill */
    struct guard_process process;
    int64_t known_ns; /* until then, pid and session are known to have been the task's */
    unsigned rounds;
    unsigned clean; /* how many of the last rounds in a row found nothing */
    bool living, doubtful, strays;
    int kill_fd, events_fd; /* of its cgroup, plus 1: 0 is none */
};

/* A guard has no heap, so its state is static. */
static struct target targets[GUARD_ENTRIES];
static pid_t sessions[GUARD_ENTRIES]; /* of this round's targets, compact for the search; 0: none */
static size_t bound;
static uint64_t dead_worker; /* the worker's tag; 0: its daemon lives */

/* ---- the leader */

/* The order matters. HIDDEN: there is a process with the pid, but /proc does not show it. */
enum leader { LEADER_GONE, LEADER_HIDDEN, LEADER_ZOMBIE, LEADER_LIVES };

static bool is_current(const struct target *target, const struct guard_entry *entry)
{
    struct guard_process now;
    return guard_entry_read(entry, target->word, &now) && now.pid == target->process.pid &&
           now.ended_ns == 0;
}

/* Sets *fd to a pidfd of the leader, which the caller closes, or to -1. */
static enum leader find_leader(struct target *target, const struct guard_entry *entry, int *fd)
{
    struct proc proc;
    int64_t now_ns = clock_boot_ns();
    *fd = target->process.ended_ns == 0 ? proc_open(target->process.pid) : -1;
    if (target->process.ended_ns != 0 || (*fd < 0 && errno == ESRCH)) {
        return LEADER_GONE;
    }
    enum leader leader = LEADER_GONE;
    if (!proc_read(target->process.pid, &proc)) {
        leader = *fd >= 0 && proc_is_there(*fd) ? LEADER_HIDDEN : LEADER_GONE;
    } else if (proc.started_ns <= target->process.born_ns && proc_is_there(*fd) &&
               is_current(target, entry)) {
        target->known_ns = now_ns;
        leader = proc_is_alive(&proc) ? LEADER_LIVES : LEADER_ZOMBIE;
    }
    if (leader == LEADER_GONE) {
        descriptor_close(fd);
    }
    return leader;
}

/* Signals the leader's group, which no member escapes by forking; and the leader itself, which may
 * not have made its group yet. */
static void signal_group(const struct target *target, int fd, int signal)
{
    pid_t leader = target->process.pid;
    if (fd < 0 || (proc_signal(fd, signal, TO_GROUP) < 0 && errno != ESRCH)) {
        (void)kill(-leader, signal); /* the next round checks what is left */
    }
    proc_send(fd, leader, signal);
}

/* Looks for the leader. If it is there, signals its group; 0: sends nothing. */
static enum leader meet_leader(struct target *target, const struct guard_entry *entry, int signal)
{
    int fd;
    enum leader leader = find_leader(target, entry, &fd);
    if (leader >= LEADER_ZOMBIE && signal) {
        signal_group(target, fd, signal);
    }
    descriptor_close(&fd);
    return leader;
}

/* ---- the others of its session */

/* Returns true if the environment tag says that the process has to die. While the daemon lives,
 * only the attempt's tag counts, since another task may have got the session's number. After its
 * death all tasks of the worker have to die. */
static bool is_tagged(const struct target *target, pid_t pid)
{
    return (target->process.tag && env_tag_read(pid) == target->process.tag) ||
           (dead_worker && env_tag_is_of_worker(pid, dead_worker));
}

/* Handles one process of the target's session. Members of the leader's own group are spared while
 * the leader is there: signal_group kills the whole group. */
static void meet(struct target *target, const struct guard_entry *entry, pid_t pid)
{
    struct proc proc;
    int64_t now_ns = clock_boot_ns();
    int fd = proc_open(pid);
    if (fd < 0 && errno == ESRCH) {
        return;
    }
    if (!proc_read(pid, &proc) || proc.session != target->process.pid || !proc_is_alive(&proc)) {
        goto done;
    }
    bool is_led = meet_leader(target, entry, 0) >= LEADER_ZOMBIE;
    bool is_older = proc.started_ns + PROC_TICK_NS <= target->known_ns;
    if (!is_led && !is_older && !is_tagged(target, pid)) {
        target->doubtful = true;
    } else if (proc_is_there(fd)) {
        bool is_stray = proc.group != target->process.pid;
        target->known_ns = fd >= 0 && now_ns > target->known_ns ? now_ns : target->known_ns;
        target->living = true;
        target->strays = target->strays || is_stray;
        if (is_stray || !is_led) {
            proc_send(fd, pid, SIGKILL);
        }
    }
done:
    descriptor_close(&fd);
}

static bool is_under_way(const struct target *target)
{
    return target->word && target->clean < CLEAN_ROUNDS;
}

static struct target *find(pid_t session)
{
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        if (sessions[slot_index] == session) {
            return &targets[slot_index];
        }
    }
    return NULL;
}

/* ---- strays: processes that have left the session and are known by their environment tag */

/* A task with a cgroup has no strays: nothing leaves the cgroup. */
static bool may_stray(size_t slot_index)
{
    return is_under_way(&targets[slot_index]) && targets[slot_index].process.tag &&
           !targets[slot_index].kill_fd;
}

/* No stray can be older than this. */
static int64_t strays_since_ns(void)
{
    int64_t since_ns = INT64_MAX;
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        if (may_stray(slot_index) && targets[slot_index].process.born_ns < since_ns) {
            since_ns = targets[slot_index].process.born_ns;
        }
    }
    return since_ns;
}

static void meet_stray(const struct proc *proc)
{
    int fd = proc_open(proc->pid);
    if (fd < 0 && errno == ESRCH) {
        return;
    }
    uint64_t tag = env_tag_read(proc->pid);
    bool executes = tag == ENV_TAG_BLANK && proc->session > 0; /* kernel threads have no session */
    for (size_t slot_index = 0; tag && slot_index < bound; slot_index++) {
        struct target *target = &targets[slot_index];
        if (!may_stray(slot_index) || !proc_is_there(fd)) {
            continue;
        }
        if (target->process.tag == tag) {
            target->living = true;
            proc_send(fd, proc->pid, SIGKILL);
        } else if (executes && target->rounds < BLANK_ROUNDS) {
            target->living = true;
        }
    }
    descriptor_close(&fd);
}

/* ---- a round's search */

/* Called if not all processes could be read. */
static void doubt_all(void)
{
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        targets[slot_index].doubtful = true;
    }
}

static void list_sessions(void)
{
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        sessions[slot_index] =
            is_under_way(&targets[slot_index]) ? targets[slot_index].process.pid : 0;
    }
}

/* Kills the process if it belongs to a target, unless it is a leader. */
static void meet_any(const struct guard_shared *shared, const struct proc *proc, int64_t since_ns)
{
    struct target *target = proc->session > 0 ? find(proc->session) : NULL;
    if (target && proc->pid != proc->session) {
        meet(target, &shared->entries[target - targets], proc->pid);
    } else if (!target && proc->started_ns + PROC_TICK_NS > since_ns && proc_is_alive(proc)) {
        meet_stray(proc);
    }
}

/* Kills the others of all targets among the descendants of the daemon. */
static void kill_near(const struct guard_shared *shared)
{
    struct proc_tree tree;
    struct proc proc;
    int64_t since_ns = strays_since_ns();
    list_sessions();
    proc_tree_begin(&tree, shared->daemon);
    while (proc_tree_next(&tree, &proc)) {
        meet_any(shared, &proc, since_ns);
    }
}

/* Kills all processes of all targets except the leaders, in one walk through /proc. */
static void kill_others(const struct guard_shared *shared)
{
    struct proc_walk walk;
    struct proc proc;
    int64_t since_ns = strays_since_ns();
    if (proc_walk_open(&walk)) {
        doubt_all();
        return;
    }
    list_sessions();
    while (proc_walk_next(&walk, &proc)) {
        meet_any(shared, &proc, since_ns);
    }
    proc_walk_close(&walk);
    if (walk.partial) {
        doubt_all();
    }
}

/* ---- cgroups */

static void kill_cgroup(const struct target *target)
{
    if (target->kill_fd) {
        ssize_t written = pwrite(target->kill_fd - 1, "1", 1, 0);
        (void)written; /* is_populated shows whether it worked */
    }
}

static bool is_populated(const struct target *target)
{
    char text[128];
    if (!target->events_fd) {
        return false;
    }
    ssize_t size = control_file_read(target->events_fd - 1, text, sizeof text);
    if (size < 0) {
        return errno != ENODEV; /* a cgroup that was removed is empty */
    }
    return !strstr(text, "populated 0");
}

void guard_kill_set_cgroup(size_t slot_index, int kill_fd, int events_fd)
{
    struct target *target = &targets[slot_index];
    int former[] = {target->kill_fd - 1, target->events_fd - 1};
    descriptor_close(&former[0]);
    descriptor_close(&former[1]);
    target->kill_fd = kill_fd + 1;
    target->events_fd = events_fd + 1;
}

/* ---- rounds */

/* Writes, since a page that was only read has no memory of its own yet. */
static void touch(volatile char *at)
{
    char byte = *at;
    *at = byte;
}

void guard_kill_reserve(const struct guard_shared *shared, size_t used)
{
    enum { LEAST = 64 };
    static size_t reserved;
    size_t most = 2 * used + LEAST;
    for (; reserved < most && reserved < GUARD_ENTRIES; reserved++) {
        touch((volatile char *)&targets[reserved]);
        touch((volatile char *)&sessions[reserved]);
        (void)atomic_load(&shared->entries[reserved].pid);
    }
}

bool guard_kill_add(size_t slot_index, uint64_t word)
{
    bool is_new = targets[slot_index].word != word;
    if (is_new) {
        targets[slot_index] = (struct target){.word = word,
                                              .kill_fd = targets[slot_index].kill_fd,
                                              .events_fd = targets[slot_index].events_fd};
    }
    bound = slot_index < bound ? bound : slot_index + 1;
    return is_new;
}

static void know_until(struct target *target, int64_t ns)
{
    target->known_ns = ns > target->known_ns ? ns : target->known_ns;
}

/* Returns false if there is nothing to do for the target. alive_ns was read before the entry: if
 * the entry does not say that the leader was reaped, it was not reaped at alive_ns. */
static bool begin_round(struct target *target, const struct guard_entry *entry, int64_t alive_ns)
{
    if (!target->word) {
        return false;
    }
    if (!guard_entry_read(entry, target->word, &target->process)) {
        target->word = 0; /* the daemon has disarmed it */
        return false;
    }
    target->living = target->doubtful = target->strays = false;
    if (target->process.pid == 0 && !is_populated(target)) {
        /* a child that enters its entry only now exits by itself, unless its cgroup is frozen */
        target->clean = CLEAN_ROUNDS;
    }
    know_until(target, target->process.born_ns);
    know_until(target, target->process.ended_ns ? target->process.ended_ns : alive_ns);
    return target->clean < CLEAN_ROUNDS;
}

static void end_round(struct target *target, const struct guard_entry *entry)
{
    bool spares = target->strays && target->rounds < STRAYS_FIRST;
    enum leader leader = meet_leader(target, entry, spares ? 0 : SIGKILL);
    target->doubtful = target->doubtful || leader == LEADER_HIDDEN;
    target->living = target->living || leader == LEADER_LIVES || is_populated(target);
    target->clean = target->living || target->doubtful ? 0 : target->clean + 1;
    target->rounds++;
}

void guard_kill_orphans(uint64_t worker)
{
    dead_worker = worker;
}

/* Begins a round of all targets. Returns false if there is nothing to do. */
static bool begin_rounds(const struct guard_shared *shared)
{
    bool any = false;
    int64_t alive_ns = atomic_load(&shared->alive_ns);
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        struct target *target = &targets[slot_index];
        if (begin_round(target, &shared->entries[slot_index], alive_ns)) {
            kill_cgroup(target);
            /* while others of its session may live the leader is not killed, so that the session's
             * number cannot be reused; but a shell must not go on with the line after a command
             * that was killed */
            (void)meet_leader(target, &shared->entries[slot_index], SIGSTOP);
            any = true;
        }
    }
    return any;
}

void guard_kill_near(const struct guard_shared *shared)
{
    if (begin_rounds(shared)) {
        kill_near(shared);
    }
}

enum guard_left guard_kill_round(const struct guard_shared *shared)
{
    enum guard_left left = GUARD_LEFT_NONE;
    if (!begin_rounds(shared)) {
        return left;
    }
    kill_others(shared);
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        struct target *target = &targets[slot_index];
        if (!is_under_way(target)) {
            continue;
        }
        end_round(target, &shared->entries[slot_index]);
        if (is_under_way(target)) {
            bool doubtful = target->doubtful && !target->living;
            left = doubtful && left != GUARD_LEFT_LIVING ? GUARD_LEFT_DOUBTFUL : GUARD_LEFT_LIVING;
        }
    }
    return left;
}
