/*
 * Carries out the actions of the state machine for one child process.
 */
#include "exec/attempt/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "queue/batch.h"

enum {
    SETTLE_MS = 500,    /* how long to wait for output after the exit */
    BLOCKED_MS = 20000, /* how much longer if the log is slow to take it */
    WATCH_MS = 5, /* when to begin to watch the pipes; most short tasks have ended by then, and
                     leatd reads their output once, at the exit */
};

/* Pauses between looks at a group that is not empty yet. */
static const double first_wait_s = 0.001, zombie_wait_s = 0.008, longest_wait_s = 0.064,
                    told_wait_s = 1;

static void feed(struct child *child, const struct attempt *meant, enum job_event event);

struct attempt *child_attempt(struct child *child, size_t index)
{
    return index == 0 ? &child->attempt : child->others[index - 1];
}

size_t child_first(const struct child *child)
{
    return child->resident ? 1 : 0;
}

const struct task *child_task(const struct child *child)
{
    return child->count > 1 || child->resident ? NULL : child->attempt.task;
}

void child_note_home(struct child *child, int error)
{
    if (error != 0) {
        child->host->homeless(child->host, error);
    }
}

/* ---- actions ---- */

/* Kills what the leader has left, and then reaps the leader. While it is a zombie, its pid, which
 * is also the id of its group and session, cannot be reused. */
static void kill_group(struct child *child)
{
    process_tree_kill(&child->tree);

    /* output that is there is read at once, so that short tasks end in one turn of the loop */
    streams_drain(child);

    /* a process that has left the group may still write; or it has to be killed too, since
     * otherwise it would run beside the next attempt */
    const struct ending *ending = &child->attempt.ending;
    if (!streams_are_done(child) || ending->cause != CAUSE_EXIT || ending->exit_code != 0) {
        process_tree_kill_strays(&child->tree);
    }
    if (ending->signal == SIGKILL) {
        process_tree_was_killed(&child->tree);
    }
    child_reaps(child);
    struct rusage used = {0};
    while (wait4(child->pid, NULL, 0, &used) < 0 && errno == EINTR) {
    }
    usage_add_exit(&child->attempt.usage, &used);
}

/* Kills what is left again, and reports it, if it is time for that. */
static void look_at_stuck_kill(struct child *child)
{
    struct child_host *host = child->host;
    bool is_led = child->attempt.state == JOB_KILLING;
    if (stuck_kill_look(&child->stuck_kill, &child->tree, is_led) && host->stuck) {
        host->stuck(host->stuck_context, &child->attempt,
                    process_tree_survivor(&child->tree, is_led));
    }
}

/* Checks whether anything of the attempt is left, and if so waits on. */
static void settle(struct child *child)
{
    int64_t left_ns = child->settle_ns - clock_boot_ns();
    /* zombies may stay long if their parent has left the group, or if process 1 is slow */
    bool gone = process_tree_is_gone(&child->tree, child->wait_s >= zombie_wait_s);
    if (left_ns <= 0 && child->attempt.ending.cause != CAUSE_SHUTDOWN) {
        streams_drain(child); /* the log may be slow to take what is left in the pipes */
        left_ns += streams_are_blocked(child) ? BLOCKED_MS * CLOCK_NS_PER_MS : 0;
    }
    if (gone && (streams_are_done(child) || left_ns <= 0)) {
        feed(child, NULL, streams_are_done(child) ? JOB_QUIET : JOB_SETTLE_OVER);
        return;
    }

    /* waiting for output ends after a while; waiting for live processes does not, since the next
     * attempt must not run beside them */
    streams_watch(child);
    if (!gone) {
        look_at_stuck_kill(child); /* it kills less often than this function looks */
    }
    double longest_s = child->stuck_kill.told ? told_wait_s : longest_wait_s;
    double left_s = left_ns > 0 ? (double)left_ns / (double)CLOCK_NS_PER_S : longest_wait_s;
    timer_start_s(&child->pause, gone || child->wait_s > left_s ? left_s : child->wait_s);
    child->wait_s = child->wait_s * 2 < longest_s ? child->wait_s * 2 : longest_s;
}

bool child_is_followed(const struct child_host *host, const struct task *task)
{
    const struct attempt_follow *follow = &host->follow;
    return follow->wrote &&
           (task->live || (follow->wanted && follow->wanted(follow->context, task)));
}

static void start_settle(struct child *child)
{
    child->settle_ns = clock_boot_ns() + SETTLE_MS * CLOCK_NS_PER_MS;
    child->wait_s = first_wait_s;
    stuck_kill_begin(&child->stuck_kill);
    settle(child);
}

/* Returns true if the leader is gone, and the rest of its group and its output have to end. */
static bool is_settling(const struct child *child)
{
    return child->attempt.state == JOB_SETTLING || child->attempt.state == JOB_CHECKED;
}

void child_was_read(struct child *child)
{
    if (is_settling(child) && child->tree.empty && streams_are_done(child)) {
        feed(child, NULL, JOB_QUIET);
    }
}

/* Counts the usage of the process for each attempt of its batch. */
static void note_usage(struct child *child)
{
    struct usage *usage = &child->attempt.usage;
    process_tree_usage(&child->tree, usage);
    for (size_t i = 1; i < child->count; i++) {
        child->others[i - 1]->usage = *usage;
        if (child->resident) { /* most of it is that of earlier tasks */
            child->others[i - 1]->usage.items[USAGE_CPU_US] = -1;
        }
    }
}

/* Disarms the guards' entry. If a guard has killed the process, it may have killed the cgroup. */
static void leave_guard(struct child *child)
{
    if (child_guard_is_taken(child)) {
        process_tree_was_killed(&child->tree);
    }
    child_guard_release(child);
}

/* Carries out the actions of one step. The child may be gone afterwards. */
static void perform(struct child *child, unsigned actions)
{
    if (actions & JOB_SEND_TERM) {
        process_tree_term(&child->tree);
    }
    if (actions & JOB_SEND_KILL) {
        process_tree_kill(&child->tree);
        if (child->stuck_kill.since_ns == 0) { /* each renewal reports a lost lease again */
            stuck_kill_begin(&child->stuck_kill);
            timer_start_s(&child->pause, told_wait_s);
        }
    }
    if (actions & JOB_START_GRACE) {
        streams_watch(child);
        timer_start_ms(&child->pause, child->host->config->task.kill_grace_ms);
    }
    if (actions & JOB_KILL_GROUP) {
        kill_group(child);
    }
    if (actions & JOB_START_SETTLE) {
        start_settle(child);
        return;
    }
    if (actions & JOB_RUN) {
        leave_guard(child);
        child->host->run(child->host, child);
        return;
    }
    if (actions & JOB_REPORT) {
        leave_guard(child);
        streams_finish(child);
        note_usage(child);
        judge_end(child);
        child_release(child);
        child->host->done(child->host, child);
    }
}

/* Notes the cause of an attempt's end. The others of a batch end with the one that is meant,
 * through no fault of their own. */
static void note_cause(struct attempt *attempt, const struct attempt *meant, enum job_event event)
{
    enum cause *cause = &attempt->ending.cause;
    enum cause found = job_cause(attempt->state, event, *cause);
    if (found == *cause) {
        return;
    }
    *cause = found;
    if (meant && meant != attempt) {
        *cause = CAUSE_BATCH;
        if (!attempt->has_verdict) {
            (void)snprintf(attempt->reason, sizeof attempt->reason, "ended with task %s",
                           meant->task->tid);
        }
    }
}

static void feed(struct child *child, const struct attempt *meant, enum job_event event)
{
    struct job_step step = job_next(child->attempt.state, event);
    for (size_t i = 0; i < child->count; i++) {
        struct attempt *attempt = child_attempt(child, i);
        note_cause(attempt, meant, event);
        attempt->state = step.state;
    }
    if (child->resident && child->resident->listed && step.state != JOB_RUNNING) {
        child->host->resident(child->host, child, RESIDENT_ENDS, NULL);
    }
    perform(child, step.actions);
}

/* ---- timers ---- */

static void on_timeout(void *context)
{
    struct child *child = context;
    if (child->resident) {
        resident_due(child);
    } else {
        if (child->needs_verdict) {
            streams_read_reports(child); /* what it wrote in time counts */
        }
        child_end(child, NULL, JOB_TIMED_OUT);
    }
}

static void on_pause(void *context)
{
    struct child *child = context;
    if (is_settling(child)) {
        settle(child);
    } else if (job_is_under_way(child->attempt.state)) {
        streams_watch(child);
    } else if (child->attempt.state == JOB_KILLING) {
        look_at_stuck_kill(child);
        timer_start_s(&child->pause, stuck_kill_wait_s(&child->stuck_kill));
    } else {
        child_end(child, NULL, JOB_GRACE_OVER);
    }
}

/* ---- start and end ---- */

/* Adds the attempts of the other tasks. Returns 0; or -1 without memory, and the attempts that
 * exist own no tasks. */
static int add_others(struct child *child, const struct claimed_task *tasks, size_t count)
{
    child->others = calloc(count - 1, sizeof(struct attempt *));
    if (!child->others) {
        return -1;
    }
    for (size_t i = 1; i < count; i++) {
        struct attempt *attempt = calloc(1, sizeof *attempt);
        if (!attempt) {
            return -1;
        }
        child->others[i - 1] = attempt;
        child->count++;
    }
    for (size_t i = 0; i < count; i++) {
        struct attempt *attempt = child_attempt(child, i);
        attempt_init(attempt, &tasks[i]);
        attempt->child = child;
        attempt->ending.shared = true;
        (void)snprintf(attempt->batch, sizeof attempt->batch, "%s", tasks[0].task->tid);
    }
    return 0;
}

static void drop(struct child *child)
{
    for (size_t i = 1; i < child->count; i++) {
        free(child->others[i - 1]);
    }
    free(child->others);
    free(child);
}

struct child *child_new(struct child_host *host, const struct claimed_task *tasks, size_t count)
{
    struct child *child = calloc(1, sizeof *child);
    if (!child) {
        return NULL;
    }
    child->host = host;
    child->report = -1;
    child->count = 1;
    child->needs_verdict = host->config->task.resident;
    child->batch = host->config->task.batch > 1 || child->needs_verdict;
    child->live = count == 1 && child_is_followed(host, tasks[0].task);
    attempt_init(&child->attempt, &tasks[0]);
    child->attempt.child = child;
    if (count > 1 && add_others(child, tasks, count)) {
        drop(child);
        return NULL;
    }
    timer_init(&child->timeout, host->loop, on_timeout, child);
    timer_init(&child->pause, host->loop, on_pause, child);
    streams_init(child);
    return child;
}

/* Ends the attempts without a process. */
static void fail(struct child *child, enum cause cause, const char *reason)
{
    for (size_t i = 0; i < child->count; i++) {
        struct attempt *attempt = child_attempt(child, i);
        attempt->state = job_next(attempt->state, JOB_START_FAILED).state;
        attempt->ending.cause = cause;
        (void)snprintf(attempt->reason, sizeof attempt->reason, "%s", reason);
    }
}

void child_refuse(struct child *child, const char *reason)
{
    fail(child, CAUSE_REFUSED, reason);
}

/* Returns after how many attempts the task is given up, unless a rule says otherwise. */
static int64_t most_attempts(const struct child *child, const struct task *task)
{
    return task->max_attempts > 0 ? task->max_attempts : child->host->config->retry.max_attempts;
}

/* Sets *input to what the process reads from stdin: the payload, or all tasks in the batch's form;
 * its size is 0 for nothing. It points into *made or the task. A resident process has nothing to
 * read yet. Returns 0, or -1 without memory. */
static int make_input(struct child *child, int64_t deadline_wall_ms, struct buffer *made,
                      struct bytes *input)
{
    const struct config_task *config = &child->host->config->task;
    const struct task *task = child->attempt.task;
    if (child->resident) {
        return 0;
    }
    const struct batch_record record = {.number = 1,
                                        .max_attempts = most_attempts(child, task),
                                        .deadline_wall_ms = deadline_wall_ms};
    if (child->batch) {
        for (size_t i = 0; i < child->count; i++) {
            if (batch_append(made, config->batch_format, child_attempt(child, i)->task,
                             child->needs_verdict ? &record : NULL)) {
                return -1;
            }
        }
        *input = (struct bytes){made->data, made->size};
    } else if (config->stdin_from == CONFIG_STDIN_PAYLOAD && task->payload) {
        *input = *task->payload;
    }
    return 0;
}

/* Starts the process in its cgroup and under guard. Returns 0; or -1 with the cause and the reason.
 */
static int start_process(struct child *child, int64_t timeout_ms, struct started *started,
                         enum cause *cause, char *reason, size_t reason_size)
{
    const struct config *config = child->host->config;
    bool follows = child->live && !child->checking;
    size_t tasks = child->resident ? child->resident->most : child->count;
    outlet_begin(&child->streams.outlet, config, child_task(child), follows, child->started_ns);
    struct start_order order = {
        .check = child->checking,
        .task = child_task(child),
        .limits = {.max_attempts = most_attempts(child, child->attempt.task),
                   .deadline_wall_ms = timeout_ms > 0 ? clock_wall_ms() + timeout_ms : 0,
                   .batch = child->batch ? tasks : 0},
        .verdicts = child->batch && !child->checking,
        .resident = child->resident,
        .ends = outlet_ends(&child->streams.outlet, config, follows),
    };
    struct buffer made = BUFFER_INIT;
    struct bytes input = {NULL, 0};
    struct task_cgroup *task_cgroup = NULL;
    int result = -1;
    *cause = CAUSE_HOST;
    if (!child->host->start.recipe ||
        make_input(child, order.limits.deadline_wall_ms, &made, &input)) {
        (void)snprintf(reason, reason_size, "cannot prepare the start: out of memory");
    } else if (!child->host->cgroups ||
               cgroups_prepare(child->host->cgroups, child->slot_index, config, order.task,
                               &task_cgroup, reason, reason_size) == 0) {
        order.input = input.size > 0 ? &input : NULL;
        order.cgroup = task_cgroup ? task_cgroup_directory(task_cgroup) : 0;
        order.entry = child_guard_arm(child, task_cgroup);
        result = start_task(&child->host->start, &order, started, cause, reason, reason_size);
    }
    if (result == 0) {
        child_renew(child);
        struct group_orphans orphans = child->host->orphans;
        orphans.tag = child_guard_tag(child);
        process_tree_begin(&child->tree, started->pid, task_cgroup, &orphans);
    } else if (task_cgroup) {
        task_cgroup_doubt(task_cgroup);
    }
    buffer_free(&made);
    return result;
}

/* Returns how long the process may run; 0: without limit. */
static int64_t time_limit_ms(const struct child *child)
{
    const struct config_task *config = &child->host->config->task;
    const struct task *task = child->attempt.task;
    if (child->checking) {
        return config->check_timeout_ms;
    }
    if (child->resident) {
        return 0;
    }
    return task->timeout_ms >= 0 && child->count == 1 ? task->timeout_ms : config->timeout_ms;
}

/* Starts the task's process, or that of its check, and its timers. Returns as child_start. */
static int launch(struct child *child)
{
    int64_t timeout_ms = time_limit_ms(child);
    struct started started;
    enum cause cause;
    char reason[sizeof child->attempt.reason];
    child->started_ns = clock_boot_ns();
    child->stuck_kill = (struct stuck_kill){0};
    if (start_process(child, timeout_ms, &started, &cause, reason, sizeof reason) < 0) {
        child_guard_release(child);
        fail(child, cause, reason);
        return -1;
    }

    child->pid = started.pid;
    child->report = started.report;
    child_note_home(child, started.home_error);
    streams_open(child, &started);
    if (child->resident) {
        resident_begin(child, &started);
    }
    timer_start_ms(&child->pause, WATCH_MS);
    if (timeout_ms > 0) {
        timer_start_ms(&child->timeout, timeout_ms);
    }
    feed(child, NULL, child->checking ? JOB_CHECK_STARTED : JOB_STARTED);
    if (child->live && !child->checking) {
        child->host->follow.began(child->host->follow.context, &child->attempt);
    }
    return 0;
}

int child_start(struct child *child)
{
    const struct config_task *config = &child->host->config->task;
    child->checking =
        config->check && (child->attempt.task->ends & (unsigned)config->check_after) != 0;
    return launch(child);
}

int child_run(struct child *child)
{
    streams_finish(child);
    note_usage(child); /* the check's own usage, which the cgroup counts no further */
    child_release(child);
    free((char *)child->attempt.stdout_tail.data);
    free((char *)child->attempt.stderr_tail.data);
    child->attempt.stdout_tail = child->attempt.stderr_tail = (struct bytes){NULL, 0};
    child->attempt.ending.exit_code = child->attempt.ending.signal = 0;
    child->checking = false;
    child->attempt.usage = (struct usage)USAGE_NONE;
    if (task_is_too_late(child->attempt.task)) {
        child_refuse(child, TASK_TOO_LATE); /* while the check ran */
        return -1;
    }
    return launch(child);
}

void child_end(struct child *child, const struct attempt *meant, enum job_event event)
{
    siginfo_t exit = {0};
    if (child->attempt.state == JOB_CHECKED ||
        waitid(P_PID, (id_t)child->pid, &exit, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        exit.si_pid == 0) {
        feed(child, meant, event);
    }
}

void child_exited(struct child *child, const siginfo_t *exit)
{
    enum job_event event = judge_exit(child, exit);
    timer_stop(&child->timeout);
    timer_stop(&child->pause);
    feed(child, NULL, event);
}

void child_release(struct child *child)
{
    timer_stop(&child->timeout);
    timer_stop(&child->pause);
    streams_free(child);
    if (child->resident) {
        resident_release(child);
    }
    descriptor_close(&child->report);
}
