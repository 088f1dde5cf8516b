/*
 * Keeps a resident process for each slot.
 */
#include "exec/residents.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "config/table.h"
#include "config/types/value.h"
#include "exec/attempt/child.h"

#define BACKOFF_BASE_S 1.0 /* after the first failure; doubles with each more */
#define BACKOFF_CAP_S 60.0
#define USEFUL_NS                                                                                  \
    CLOCK_NS_PER_S /* a process that was ready for so long did not fail at its start */

static const struct config_task *config_of(const struct residents *residents)
{
    return &residents->host->config->task;
}

static size_t slots_of(const struct residents *residents)
{
    return (size_t)residents->host->config->queue.concurrency;
}

void residents_init(struct residents *residents, struct child_host *host)
{
    residents->host = host;
    TAILQ_INIT(&residents->all);
    TAILQ_INIT(&residents->idle);
    TAILQ_INIT(&residents->some);
    residents->wanted = config_of(residents)->resident ? slots_of(residents) : 0;
    timer_init(&residents->backoff, host->loop, NULL, NULL);
}

/* ---- the lists of those that can take tasks ---- */

static void unlist(struct residents *residents, struct resident *resident, size_t count)
{
    if (!resident->listed) {
        return;
    }
    resident->listed = false;
    if (count == 0) {
        TAILQ_REMOVE(&residents->idle, resident, place);
        residents->idle_count--;
    } else {
        TAILQ_REMOVE(&residents->some, resident, place);
        residents->room -= resident->most - count;
    }
}

void residents_update(struct residents *residents, struct child *child, size_t former_count)
{
    struct resident *resident = child->resident;
    size_t count = resident_count(child);
    unlist(residents, resident, former_count);
    residents->busy += count > 0;
    residents->busy -= former_count > 0;
    if (!resident->ready || resident->closing || child->attempt.state != JOB_RUNNING) {
        return;
    }
    if (count == 0) {
        TAILQ_INSERT_HEAD(&residents->idle, resident, place);
        residents->idle_count++;
    } else if (count < resident->most) {
        TAILQ_INSERT_TAIL(&residents->some, resident, place);
        residents->room += resident->most - count;
    }
    resident->listed = count < resident->most;
}

struct child *residents_find(const struct residents *residents, bool idle)
{
    struct resident *resident = idle ? TAILQ_FIRST(&residents->idle) : NULL;
    resident = resident ? resident : TAILQ_FIRST(&residents->some);
    return resident ? resident->child : NULL;
}

/* Returns whether another one may be started now. While former ones do not end, worn ones go on, so
 * that processes that ignore the end of their input do not become more and more. */
static bool may_start(const struct residents *residents)
{
    return !timer_runs(&residents->backoff) && residents->count < 2 * slots_of(residents);
}

size_t residents_room(const struct residents *residents, size_t slots)
{
    /* while one starts, its slot is no room: nobody knows how long that takes */
    size_t startable = 0, idle = residents->idle_count;
    if (config_of(residents)->resident && residents->starting == 0 && may_start(residents) &&
        residents->fresh < slots_of(residents)) {
        startable = slots_of(residents) - residents->fresh;
    }
    idle = idle + startable < slots ? idle + startable : slots;
    return residents->room + idle * (size_t)config_of(residents)->batch;
}

/* ---- closing ---- */

static bool is_fresh(const struct resident *resident)
{
    return !resident->worn && !resident->closing;
}

/* Takes one out of those that are fresh, before it is marked as worn or closing. */
static void leave_fresh(struct residents *residents, const struct resident *resident)
{
    if (is_fresh(resident)) {
        residents->fresh--;
        residents->starting -= !resident->ready;
    }
}

static void close_one(struct residents *residents, struct resident *resident)
{
    struct child *child = resident->child;
    leave_fresh(residents, resident);
    resident_close(child);
    residents_update(residents, child, resident_count(child));
}

static void wear(struct residents *residents, struct resident *resident)
{
    leave_fresh(residents, resident);
    resident->worn = true;
}

static bool is_running(const struct child *child)
{
    return child->attempt.state == JOB_RUNNING;
}

/* Closes a worn one if there are enough others that take tasks: one without tasks if there is any.
 * Returns false if it closed none. */
static bool close_one_worn(struct residents *residents)
{
    struct resident *resident, *worn = NULL;
    size_t count = residents->fresh - residents->starting;
    TAILQ_FOREACH(resident, &residents->all, link) {
        if (resident->worn && !resident->closing && is_running(resident->child)) {
            count++;
            worn = !worn || resident_count(resident->child) == 0 ? resident : worn;
        }
    }
    bool enough = count > residents->wanted;
    if (worn && enough) {
        close_one(residents, worn);
    }
    return worn && enough;
}

static void close_worn(struct residents *residents)
{
    while (close_one_worn(residents)) {
    }
}

void residents_close(struct residents *residents)
{
    struct resident *resident;
    residents->wanted = 0;
    TAILQ_FOREACH(resident, &residents->all, link) {
        if (!resident->closing) {
            close_one(residents, resident);
        }
    }
}

void residents_end(struct residents *residents, enum job_event event)
{
    struct resident *resident;
    residents_close(residents);
    TAILQ_FOREACH(resident, &residents->all, link) {
        if (resident_count(resident->child) == 0) {
            child_end(resident->child, NULL, event);
        }
    }
}

/* ---- starting ---- */

static void back_off(struct residents *residents)
{
    double wait_s = residents->wait_s > 0 ? residents->wait_s : BACKOFF_BASE_S;
    residents->wait_s = wait_s * 2 < BACKOFF_CAP_S ? wait_s * 2 : BACKOFF_CAP_S;
    timer_start_s(&residents->backoff, wait_s);
}

static int start_one(struct residents *residents)
{
    char reason[160] = "out of memory";
    struct child *child = resident_new(residents->host);
    if (!child || residents->start(residents->context, child, reason, sizeof reason) < 0) {
        back_off(residents);
        residents->event(residents->context, RESIDENTS_CANNOT_RUN, 0, reason);
        return -1;
    }
    TAILQ_INSERT_TAIL(&residents->all, child->resident, link);
    residents->count++;
    residents->fresh++;
    residents->starting++;
    return 0;
}

void residents_keep(struct residents *residents, size_t needed)
{
    size_t most = slots_of(residents);
    if (!config_of(residents)->resident) {
        return;
    }
    residents->wanted = residents->wanted > needed ? residents->wanted : needed;
    residents->wanted = residents->wanted < most ? residents->wanted : most;
    while (residents->fresh < residents->wanted && may_start(residents) &&
           start_one(residents) == 0) {
    }
}

/* ---- news ---- */

static void become_ready(struct residents *residents, struct child *child)
{
    struct resident *resident = child->resident;
    if (is_fresh(resident)) {
        residents->starting--;
    }
    if (is_running(child)) {
        close_worn(residents);
    }
    residents_update(residents, child, resident_count(child));
}

void residents_news(struct residents *residents, struct child *child, enum resident_news news,
                    const char *text)
{
    struct resident *resident = child->resident;
    switch (news) {
    case RESIDENT_READY:
        become_ready(residents, child);
        return;
    case RESIDENT_WORN:
        residents->fresh--; /* a successor is missing now */
        return;
    case RESIDENT_ENDS:
        unlist(residents, resident, resident_count(child));
        return;
    case RESIDENT_IDLE:
        residents->wanted -= residents->wanted > 0 && is_fresh(resident);
        close_one(residents, resident);
        return;
    case RESIDENT_TROUBLE:
        residents->event(residents->context, RESIDENTS_FAILED, child->pid, text);
        return;
    }
}

/* ---- ends ---- */

static bool cannot_execute(const struct ending *ending)
{
    return ending->cause == CAUSE_HOST || ending->cause == CAUSE_NO_PROGRAM;
}

/* Returns whether a task that the process had ended it, or failed with it. */
static bool had_part(const struct child *child)
{
    for (size_t i = 1; i < child->count; i++) {
        enum cause cause = child->others[i - 1]->ending.cause;
        if (cause != CAUSE_BATCH) {
            return true;
        }
    }
    return false;
}

static const char *when_it_ended(const struct resident *resident)
{
    if (!resident->ready) {
        return "before it wrote \"ready\"";
    }
    return resident->ended == 0 ? "before its first task" : "between two tasks";
}

/* Says how a process failed that should have lived on. */
static void tell_failure(struct residents *residents, const struct child *child)
{
    char how[64], text[320];
    const struct ending *ending = &child->attempt.ending;
    ending_describe(ending, how, sizeof how);
    if (!child->resident->ready && cannot_execute(ending)) {
        residents->event(residents->context, RESIDENTS_CANNOT_RUN, child->pid,
                         child->attempt.reason);
        return;
    }
    (void)snprintf(
        text, sizeof text, "ended %s: %s%s%s; starting another in %.0f s; see its output",
        when_it_ended(child->resident), how, *child->attempt.reason ? ", " : "",
        child->attempt.reason, residents->wait_s > 0 ? residents->wait_s : BACKOFF_BASE_S);
    residents->event(residents->context, RESIDENTS_FAILED, child->pid, text);
}

/* Returns whether the process, which had `count` tasks at its end, may have ended because it was
 * not needed, and not because it cannot work. */
static bool was_useful(const struct resident *resident, size_t count)
{
    bool lasted = resident->ready && clock_boot_ns() - resident->free_ns >= USEFUL_NS;
    return resident->ended > 0 || (count == 0 && lasted);
}

/* Decides whether another one is started at once, later, or when tasks need it. */
static void judge(struct residents *residents, const struct child *child)
{
    const struct resident *resident = child->resident;
    const struct ending *ending = &child->attempt.ending;
    if (resident->ended > 0) {
        residents->wait_s = 0;
    }
    if (child->attempt.state != JOB_DONE || resident->closing || had_part(child)) {
        return;
    }
    if (was_useful(resident, resident_count(child)) && !resident->troubled &&
        ending->cause == CAUSE_EXIT && ending->exit_code == 0) {
        residents->wanted -= residents->wanted > 0 && !resident->worn;
        return;
    }
    if (!resident->troubled) {
        tell_failure(residents, child);
    }
    back_off(residents);
}

void residents_gone(struct residents *residents, struct child *child)
{
    struct resident *resident = child->resident;
    size_t count = resident_count(child);
    judge(residents, child);
    unlist(residents, resident, count);
    leave_fresh(residents, resident);
    residents->busy -= count > 0;
    residents->count--;
    TAILQ_REMOVE(&residents->all, resident, link);
    resident_free(resident);
    child->resident = NULL;
}

void residents_free(struct residents *residents)
{
    timer_stop(&residents->backoff);
}

/* ---- reload ---- */

/* Returns whether a process would be started in another way. */
static bool differs(const struct config *former, const struct config *config)
{
    static const struct {
        const char *section, *name;
    } keys[] = {
        {"task", "command"},
        {"task", "shell"},
        {"task", "directory"},
        {"task", "path"},
        {"task", "environment"},
        {"task", "user"},
        {"task", "group"},
        {"task", "umask"},
        {"task", "no_new_privileges"},
        {"task", "batch"},
        {"task", "batch_format"},
        {"task", "nice"},
        {"task", "ionice"},
        {"task", "oom_score_adj"},
        {"limits", "open_files"},
        {"limits", "core"},
        {"limits", "cpu_time"},
        {"limits", "file_size"},
        {"limits", "processes"},
        {"limits", "stack"},
        {"limits", "locked_memory"},
        {"limits", "address_space"},
        {"isolation", "memory_max"},
        {"isolation", "memory_high"},
        {"isolation", "pids_max"},
        {"isolation", "cpu_max"},
        {"isolation", "cpu_weight"},
        {"isolation", "io_weight"},
        {"output", "to"},
        {"output", "merge"},
        {"output", "max_output"},
        {"dead", "output_tail"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!value_equal(former, config, table_find(keys[i].section, keys[i].name))) {
            return true;
        }
    }
    return false;
}

/* Closes processes above the number of slots. */
static void shrink(struct residents *residents)
{
    struct resident *resident, *next;
    for (resident = TAILQ_FIRST(&residents->all);
         resident && residents->fresh > slots_of(residents); resident = next) {
        next = TAILQ_NEXT(resident, link);
        if (is_fresh(resident)) {
            close_one(residents, resident);
        }
    }
}

void residents_reload(struct residents *residents, const struct config *former)
{
    const struct config *config = residents->host->config;
    if (!config->task.resident) {
        residents_close(residents);
        return;
    }
    bool other = differs(former, config),
         form = former->task.batch_format != config->task.batch_format;
    struct resident *resident;
    TAILQ_FOREACH(resident, &residents->all, link) {
        /* one that starts now has the former config; payloads are checked for the new form */
        if (!resident->closing && (form || (other && !resident->ready))) {
            close_one(residents, resident);
        } else if (other && is_fresh(resident)) {
            wear(residents, resident);
        }
        resident_reload(resident->child);
    }
    residents->wanted = slots_of(residents);
    residents->wait_s = 0;
    timer_stop(&residents->backoff);
    shrink(residents);
    close_worn(residents);
}
