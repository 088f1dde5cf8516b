/*
 * Keeps the list of attempts, starts their processes, and distributes exits among them.
 */
#include "exec/runner.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/process/descriptor.h"
#include "base/process/mounts.h"
#include "exec/attempt/child.h"
#include "exec/attempt/child_table.h"
#include "exec/attempt/halves.h"
#include "exec/attempt/orphan_scan.h"
#include "exec/runner_state.h"
#include "exec/start/recipe.h"
#include "exec/tree/env_tag.h"
#include "exec/tree/exits.h"

enum {
    SCRATCH_SIZE = 64 * 1024,
    FREE_MS = 2000, /* how long runner_free waits for killed processes */
};

/* ---- the list of attempts ---- */

void runner_list_add(struct runner *runner, struct attempt *attempt)
{
    LIST_INSERT_HEAD(&runner->attempts, attempt, link);
    runner->count++;
}

void runner_list_remove(struct runner *runner, struct attempt *attempt)
{
    LIST_REMOVE(attempt, link);
    runner->count--;
}

struct attempt *runner_first(struct runner *runner)
{
    return LIST_FIRST(&runner->attempts);
}

size_t runner_count(const struct runner *runner)
{
    return runner->count;
}

size_t runner_processes(const struct runner *runner)
{
    return runner->processes + runner->residents.busy;
}

/* ---- reports ---- */

/* Reports an attempt, unless its task has moved to another. */
static void report(struct runner *runner, struct attempt *attempt)
{
    if (attempt->task) {
        if (*attempt->batch) {
            task_drop_payload(attempt->task);
        }
        runner->events.ended(runner->events.context, attempt);
    } else {
        attempt_free(attempt);
    }
}

/* Reports a child's attempts. The receiver may free each at once, and freeing the first frees the
 * child. */
static void hand_over(struct runner *runner, struct child *child)
{
    struct attempt **others = child->others;
    size_t count = child->count;
    log_burst_begin();
    report(runner, &child->attempt);
    for (size_t i = 1; i < count; i++) {
        report(runner, others[i - 1]);
    }
    log_burst_end();
    free(others);
}

static void forget(struct runner *runner, struct child *child)
{
    slot_index_release(runner->slot_indexes, child->slot_index);
    child_table_remove(runner->settling, child);
    for (size_t i = child_first(child); i < child->count; i++) {
        runner_list_remove(runner, child_attempt(child, i));
    }
    if (child->resident) {
        residents_gone(&runner->residents, child);
        task_free(child->attempt.task);
        child->attempt.task = NULL; /* so it is not reported */
    } else {
        runner->processes--;
    }
}

/* ---- halves of failed batches ---- */

static const char other_half_failed[] = "another half of its batch could not run";

static void end_waiting(struct runner *runner, struct attempt *attempt, enum cause cause,
                        const char *reason)
{
    attempt->state = job_next(attempt->state, JOB_STOP).state;
    attempt->ending.cause = cause;
    (void)snprintf(attempt->reason, sizeof attempt->reason, "%s", reason);
    runner_list_remove(runner, attempt);
    report(runner, attempt);
}

static void put_back(struct runner *runner, struct attempt *waiting, enum cause cause,
                     const char *reason)
{
    for (struct attempt *next; waiting; waiting = next) {
        next = waiting->after;
        end_waiting(runner, waiting, cause, reason);
    }
}

/* Refuses those that wait whose signature has expired. Returns the others. */
static struct attempt *refuse_late(struct runner *runner, struct attempt *waiting)
{
    struct attempt *one = waiting;
    while (one) {
        struct attempt *after = one->after;
        if (task_is_too_late(one->task)) {
            halves_remove(&waiting, one);
            end_waiting(runner, one, CAUSE_REFUSED, TASK_TOO_LATE);
        }
        one = after;
    }
    return waiting;
}

static int start(struct runner *runner, const struct claimed_task *tasks, size_t count,
                 struct child **running);

/* Starts the first half of those that wait. If it cannot start, the others go back. */
static void run_half(struct runner *runner, struct attempt *waiting)
{
    struct claimed_task tasks[CONFIG_BATCH_MOST];
    struct attempt *rest;
    struct child *child;
    size_t count = halves_first(waiting, tasks, &rest);
    if (start(runner, tasks, count, &child)) {
        put_back(runner, waiting, CAUSE_HOST, "out of memory");
        return;
    }
    for (struct attempt *next; waiting != rest; waiting = next) {
        next = waiting->after;
        runner_list_remove(runner, waiting);
        waiting->task = NULL; /* the new attempt has it */
        attempt_free(waiting);
    }
    if (!child) {
        put_back(runner, rest, CAUSE_HOST, other_half_failed);
        return;
    }
    child->waiting = rest;
    for (; rest; rest = rest->after) {
        rest->child = child;
    }
}

/* Adds attempts that now wait, up to `end`, and says why. */
static void add_waiting(struct runner *runner, struct child *child, struct attempt *first,
                        const struct attempt *end)
{
    size_t count = 0, i = 0;
    for (struct attempt *one = first; one != end; one = one->after) {
        runner_list_add(runner, one);
        count++;
    }
    while (child_attempt(child, i)->task) {
        i++;
    }
    if (runner->events.halved) {
        runner->events.halved(runner->events.context, child_attempt(child, i), count);
    }
}

/* ---- events of children ---- */

static void on_done(struct child_host *host, struct child *child)
{
    struct runner *runner = (struct runner *)host; /* the host is its first member */
    if (child->resident) {
        forget(runner, child);
        hand_over(runner, child);
        return;
    }
    const struct attempt *former = child->waiting;
    struct attempt *waiting = halves_split(child);
    forget(runner, child);
    if (waiting != former) {
        add_waiting(runner, child, waiting, former);
    }
    if (waiting && child->outdated) {
        put_back(runner, waiting, CAUSE_BATCH, "the configuration was reloaded");
    } else if (waiting && !halves_may_run(child)) {
        put_back(runner, waiting, CAUSE_HOST, other_half_failed);
    } else {
        waiting = refuse_late(runner, waiting);
        if (waiting) {
            run_half(runner, waiting);
        }
    }
    hand_over(runner, child);
}

static void on_homeless(struct child_host *host, int error)
{
    struct runner *runner = (struct runner *)host;
    if (runner->homeless || !runner->events.homeless || !runner->recipe) {
        return;
    }
    runner->homeless = true;
    runner->events.homeless(runner->events.context, environment_home(runner->recipe->environment),
                            error);
}

/* The tasks of a batch may have to run again. */
static void drop_payload(struct child *child)
{
    if (child->count == 1) {
        task_drop_payload(child->attempt.task);
    }
}

static void on_run(struct child_host *host, struct child *child)
{
    struct runner *runner = (struct runner *)host;
    (void)runner_make_recipe(runner); /* without a recipe, the start fails */
    child_table_remove(runner->settling, child);
    if (child_run(child) < 0) {
        child_release(child);
        on_done(host, child);
    } else {
        drop_payload(child);
        child_table_add(runner->table, child);
    }
}

/* Handles an exit. Returns false for a process that no runner has started. */
static bool on_exited(void *context, const siginfo_t *exit)
{
    struct runner *runner = context;
    struct child *child = child_table_take(runner->table, exit->si_pid);
    if (child) {
        if (runner->host.guard) {
            guard_tell_alive(runner->host.guard);
        }
        child_table_add(runner->settling, child);
        child_exited(child, exit);
    }
    return child;
}

/* ---- recipe and mounts ---- */

static void drop_recipe(struct runner *runner)
{
    recipe_free(runner->recipe);
    runner->recipe = NULL;
    runner->host.start.recipe = NULL;
}

int runner_make_recipe(struct runner *runner)
{
    if (runner->recipe && *runner->recipe->identity->missing) {
        drop_recipe(runner);
    }
    if (!runner->recipe) {
        runner->recipe = recipe_new(runner->host.config, runner->worker);
        runner->host.start.recipe = runner->recipe;
    }
    return runner->recipe ? 0 : -1;
}

static void on_mounts(void *context)
{
    struct runner *runner = context;
    if (runner->recipe) {
        recipe_check_mounts(runner->recipe);
    }
}

static void watch_mounts(struct runner *runner)
{
    runner->mounts = mounts_open();
    fd_watch_init(&runner->mounts_changed, on_mounts, runner);
    if (runner->mounts >= 0) {
        fd_watch_start(&runner->mounts_changed, runner->host.loop, runner->mounts, EV_WRITE);
    }
}

/* Returns true if the limit is this process's own, so that children need not set it. */
static bool is_own_limit(const struct rlimit *nofile)
{
    struct rlimit own;
    return getrlimit(RLIMIT_NOFILE, &own) == 0 && own.rlim_cur == nofile->rlim_cur &&
           own.rlim_max == nofile->rlim_max;
}

/* ---- create ---- */

/* Sets up what both kinds of runners have. */
static struct runner *new_runner(struct ev_loop *loop, const struct config *config,
                                 const struct rlimit *nofile, const struct runner_events *events)
{
    struct runner *runner = calloc(1, sizeof *runner);
    if (!runner) {
        return NULL;
    }
    runner->events = *events;
    runner->files = *nofile;
    runner->host = (struct child_host){
        .loop = loop,
        .config = config,
        .start = {.files = is_own_limit(nofile) ? NULL : &runner->files,
                  .null = descriptor_above(open("/dev/null", O_RDWR | O_CLOEXEC), 3)},
        .scratch_size = SCRATCH_SIZE,
        .done = on_done,
        .run = on_run,
        .homeless = on_homeless,
        .stuck = events->stuck,
        .stuck_context = events->context,
    };
    runner_init_residents(runner);
    runner->mounts = -1;
    runner->exits = EXITS_UNWATCHED;
    runner->first_runner = runner;
    runner->table = &runner->own_table;
    runner->settling = &runner->own_settling;
    runner->slot_indexes = &runner->own_slot_indexes;
    if (runner->host.start.null < 0) {
        runner_free(runner);
        return NULL;
    }
    return runner;
}

/* Does the last step of creating a runner. If it fails, it frees the runner and returns NULL with
 * errno. */
static struct runner *complete(struct runner *runner)
{
    if (runner_make_recipe(runner) < 0) {
        runner_free(runner);
        errno = ENOMEM;
        return NULL;
    }
    watch_mounts(runner);
    return runner;
}

struct runner *runner_new(struct ev_loop *loop, const struct config *config, const char *worker,
                          const struct rlimit *nofile, const struct runner_events *events)
{
    if (ev_is_default_loop(loop)) {
        errno = EINVAL;
        return NULL;
    }
    struct runner *runner = new_runner(loop, config, nofile, events);
    if (!runner) {
        return NULL;
    }
    runner->worker = strdup(worker);
    runner->host.worker_tag = env_tag_worker(worker);
    runner->scratch = runner->host.scratch = malloc(SCRATCH_SIZE);
    runner->orphan_scan =
        (struct orphan_scan){.running = runner->table, .settling = runner->settling};
    runner->host.orphans = orphan_scan_orphans(&runner->orphan_scan);
    if (!runner->worker || !runner->scratch || child_table_init(&runner->own_table) ||
        child_table_init(&runner->own_settling)) {
        runner_free(runner);
        errno = ENOMEM;
        return NULL;
    }
    runner = complete(runner);
    if (runner && exits_watch(&runner->exits, loop, on_exited, runner)) {
        runner_free(runner);
        return NULL;
    }
    return runner;
}

struct runner *runner_new_beside(struct runner *first, const struct config *config,
                                 const struct runner_events *events)
{
    struct runner *runner = new_runner(first->host.loop, config, &first->files, events);
    if (!runner) {
        return NULL;
    }
    runner->table = first->table;
    runner->settling = first->settling;
    runner->host.orphans = first->host.orphans;
    runner->slot_indexes = first->slot_indexes;
    runner->host.cgroups = first->host.cgroups;
    runner->first_runner = first;
    runner->host.scratch = first->host.scratch;
    return complete(runner);
}

void runner_set_cgroups(struct runner *runner, struct cgroups *cgroups)
{
    runner->host.cgroups = cgroups;
}

void runner_set_guard(struct runner *runner, struct guard *guard)
{
    runner->host.guard = runner->orphan_scan.guard = guard;
}

void runner_set_lease(struct runner *runner, int64_t lease_ms)
{
    runner->host.lease_ms = lease_ms;
}

void runner_renewed(struct runner *runner)
{
    struct attempt *attempt;
    LIST_FOREACH(attempt, &runner->attempts, link) {
        if (attempt == &attempt->child->attempt) {
            child_renew(attempt->child);
        }
    }
    struct resident *resident;
    TAILQ_FOREACH(resident, &runner->residents.all, link) {
        child_renew(resident->child);
    }
    if (runner->count > 0 && runner->host.guard) {
        guard_check(runner->host.guard);
    }
}

void runner_set_config(struct runner *runner, const struct config *config)
{
    drop_recipe(runner);
    struct attempt *attempt;
    LIST_FOREACH(attempt, &runner->attempts, link) {
        attempt->child->outdated = true;
    }
    const struct config *former = runner->host.config;
    runner->host.config = config;
    runner->homeless = false;
    (void)runner_make_recipe(runner); /* without memory, the next start tries again */
    residents_reload(&runner->residents, former);
}

bool runner_accepts(struct runner *runner, const struct task *task, char *reason,
                    size_t reason_size)
{
    /* without a recipe the start fails, and no attempt is counted */
    return runner_make_recipe(runner) < 0 || !runner->recipe->commands ||
           commands_fit(runner->recipe->commands, task, reason, reason_size);
}

int runner_launch(struct runner *runner, struct child *child)
{
    runner->host.guard = runner->first_runner->host.guard;
    if (!runner->host.start.signals) {
        runner->host.start.signals = spawn_signals();
    }

    /* exits are handled by the loop, so the child is in the table by then */
    if (child_start(child) < 0) {
        slot_index_release(runner->slot_indexes, child->slot_index);
        return -1;
    }
    child_table_add(runner->table, child);
    return 0;
}

/* Starts one process as runner_start does. Sets *running to the child; NULL: the start failed, and
 * its attempts were reported. */
static int start(struct runner *runner, const struct claimed_task *tasks, size_t count,
                 struct child **running)
{
    *running = NULL;
    if (runner_make_recipe(runner) < 0) {
        return -1;
    }
    size_t slot_index;
    if (slot_index_take(runner->slot_indexes, &slot_index)) {
        return -1;
    }
    struct child *child = child_new(&runner->host, tasks, count);
    if (!child) {
        slot_index_release(runner->slot_indexes, slot_index);
        return -1;
    }
    child->slot_index = slot_index;
    if (runner_launch(runner, child) < 0) {
        hand_over(runner, child);
        return 0;
    }
    if (!child->checking) {
        drop_payload(child);
    }
    runner->processes++;
    for (size_t i = 0; i < count; i++) {
        runner_list_add(runner, child_attempt(child, i));
    }
    *running = child;
    return 0;
}

int runner_start(struct runner *runner, const struct claimed_task *tasks, size_t count)
{
    struct child *child;
    return start(runner, tasks, count, &child);
}

int runner_refuse(struct runner *runner, struct task *task, const char *reason)
{
    const struct claimed_task begun = {.task = task};
    struct child *child = child_new(&runner->host, &begun, 1);
    if (!child) {
        return -1;
    }
    child_refuse(child, reason);
    hand_over(runner, child);
    return 0;
}

void runner_set_follow(struct runner *runner, const struct attempt_follow *follow)
{
    runner->host.follow = *follow;
}

bool runner_follow(struct runner *runner, struct attempt *attempt,
                   struct attempt_written written[2])
{
    (void)runner;
    return attempt->state != JOB_CLAIMED && child_follow(attempt->child, attempt, written);
}

void runner_unfollow(struct runner *runner, struct attempt *attempt)
{
    (void)runner;
    child_unfollow(attempt->child);
}

void runner_resume(struct runner *runner, struct attempt *attempt)
{
    (void)runner;
    child_resume(attempt->child);
}

void runner_end(struct runner *runner, struct attempt *attempt, enum job_event event)
{
    if (attempt->state == JOB_CLAIMED) {
        halves_remove(&attempt->child->waiting, attempt);
        end_waiting(runner, attempt, job_cause(JOB_CLAIMED, event, CAUSE_EXIT), "");
    } else {
        attempt->told_to_end = true;
        child_end(attempt->child, event == JOB_STOP ? NULL : attempt, event);
    }
}

/* ---- free ---- */

/* Waits until a killed leader is gone, but only until `until_ns`, since it may hang in the kernel.
 * The guards find out whether anything else is left. */
static void await_exit(struct child *child, int64_t until_ns)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    siginfo_t exit = {0};
    for (;;) {
        if (waitid(P_PID, (id_t)child->pid, &exit, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            exit.si_pid == child->pid) {
            child_reaps(child);
            (void)waitpid(child->pid, NULL, WNOHANG); /* a zombie: does not fail */
            return;
        }
        if (clock_boot_ns() >= until_ns) {
            return;
        }
        nanosleep(&pause, NULL);
    }
}

static bool has_leader(const struct child *child)
{
    return child->attempt.state != JOB_SETTLING && child->attempt.state != JOB_CHECKED;
}

static void drop_waiting(struct runner *runner, struct attempt *waiting)
{
    for (struct attempt *next; waiting; waiting = next) {
        next = waiting->after;
        runner_list_remove(runner, waiting);
        attempt_free(waiting);
    }
}

static void kill_child(struct runner *runner, struct child *child)
{
    if (has_leader(child)) {
        process_tree_kill(&child->tree);
        if (!runner->first_runner->host.guard) {
            /* this reads all of /proc for each child; guards do it once for all */
            process_tree_kill_strays(&child->tree);
        }
    }
}

static void drop_child(struct runner *runner, struct child *child, int64_t until_ns)
{
    if (has_leader(child)) {
        await_exit(child, until_ns);
        child_table_take(runner->table, child->pid);
    }
    child_release(child);
    forget(runner, child);
    drop_waiting(runner, child->waiting);
    for (size_t i = 1; i < child->count; i++) {
        attempt_free(child->others[i - 1]);
    }
    free(child->others);
    attempt_free(&child->attempt);
}

static void drop_attempts(struct runner *runner)
{
    /* kill all before waiting for the first */
    struct attempt *attempt;
    LIST_FOREACH(attempt, &runner->attempts, link) {
        struct child *child = attempt->child;
        if (attempt == &child->attempt) {
            kill_child(runner, child);
        }
    }
    struct resident *resident;
    TAILQ_FOREACH(resident, &runner->residents.all, link) {
        kill_child(runner, resident->child);
    }
    int64_t until_ns = clock_boot_ns() + FREE_MS * CLOCK_NS_PER_MS; /* for all together */
    while (!TAILQ_EMPTY(&runner->residents.all)) {
        drop_child(runner, TAILQ_FIRST(&runner->residents.all)->child, until_ns);
    }
    while (!LIST_EMPTY(&runner->attempts)) {
        drop_child(runner, LIST_FIRST(&runner->attempts)->child, until_ns);
    }
    residents_free(&runner->residents);
}

static void stop_watching(struct runner *runner)
{
    exits_stop(&runner->exits);
    fd_watch_stop(&runner->mounts_changed, runner->host.loop);
    descriptor_close(&runner->mounts);
}

void runner_free(struct runner *runner)
{
    if (!runner) {
        return;
    }
    int error = errno;
    drop_attempts(runner);
    stop_watching(runner);
    descriptor_close(&runner->host.start.null);
    recipe_free(runner->recipe);
    child_table_free(&runner->own_table);
    child_table_free(&runner->own_settling);
    slot_index_free(&runner->own_slot_indexes);
    free(runner->scratch);
    free(runner->worker);
    free(runner);
    errno = error;
}
