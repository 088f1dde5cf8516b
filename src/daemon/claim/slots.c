/*
 * Starts claimed tasks in free slots, fills batches, and decides how many tasks to claim ahead.
 */
#include "daemon/claim/slots.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/timer.h"
#include "daemon/claim/signature_check.h"
#include "daemon/claim/waiting.h"
#include "daemon/report/figures.h"
#include "daemon/report/task_log.h"
#include "queue/batch.h"

#define SLOT_WAIT_MS 20    /* the longest wait of a task for a slot */
#define EXPECTED_US 10000  /* tasks are claimed ahead if they should start within this time */
#define SHORT_US 2000      /* tasks are claimed ahead if they take less than this on average */
#define LEAST_AHEAD 16     /* the most tasks that wait for a slot, or */
#define SLOT_AHEAD 4       /* this for each slot, if it is more: tasks cost less in larger calls */
#define AVERAGE_SHARE 8    /* one part in this many of the average is the newest duration */
#define NO_TIME_US 1000000 /* the average at the start, and after a task had to go back */

/* As fractions of the lease: the longest time to fill a batch, and the longest wait for a slot.
 * Before a task runs, renewals do not move its local deadline: that wait, and the time to the next
 * renewal, must leave half of the lease. */
#define FILL_SHARE 10
#define SLOT_WAIT_SHARE 8

#define BATCH_BYTES ((size_t)8 << 20) /* a batch with this many bytes is full */
#define MOST_TASKS ((size_t)16384)    /* every renewal names all running tasks */

struct slots {
    struct worker_context *worker;
    struct runner *runner;
    struct lease *lease;
    const struct host *host;
    struct signature_check *signature_check;
    struct outcomes *outcomes;

    struct waiting single; /* tasks with a process of their own */
    struct waiting shared; /* tasks for batches */
    size_t per_slot;       /* how many tasks a claim asks for per slot, up to `batch` */
    size_t alone;          /* running tasks that need the worker for themselves: 0 or 1 */
    int64_t average_us;
    int64_t max_crashes;
    struct timer timer; /* ends the longest wait, for a slot or for more tasks */
    int64_t back_ns;    /* when a task last went back after waiting too long */
};

/* ---- how many ---- */

static size_t batch_of(const struct slots *slots)
{
    return (size_t)slots->worker->config->task.batch;
}

static bool is_resident(const struct slots *slots)
{
    return slots->worker->config->task.resident;
}

/* Returns whether tasks wait in two lists: for a process that they share, and for one of their own.
 * A resident process is shared by tasks that come one after the other, too. */
static bool is_shared(const struct slots *slots)
{
    return batch_of(slots) > 1 || is_resident(slots);
}

bool slots_are_closed(const struct slots *slots)
{
    return slots->alone > 0;
}

size_t slots_of_others(const struct slots *slots)
{
    size_t concurrency = (size_t)slots->worker->config->queue.concurrency;
    return slots->worker->others < concurrency ? slots->worker->others : concurrency;
}

static size_t at_most(size_t most, size_t taken)
{
    return most > taken ? most - taken : 0;
}

static size_t allowed(const struct slots *slots)
{
    if (slots->alone > 0 || !slots->worker->may_claim) {
        return 0;
    }
    size_t most = at_most((size_t)slots->worker->config->queue.concurrency, slots_of_others(slots));
    return host_is_doubtful(slots->host) && most > 1 ? 1 : most;
}

size_t slots_most(const struct slots *slots)
{
    size_t most = (size_t)slots->worker->config->queue.concurrency * batch_of(slots);
    return most < MOST_TASKS ? most : MOST_TASKS;
}

size_t slots_taken(const struct slots *slots)
{
    return runner_count(slots->runner) + slots->single.count + slots->shared.count +
           signature_check_count(slots->signature_check) + slots_of_others(slots);
}

size_t slots_room(const struct slots *slots)
{
    size_t per_slot = host_is_doubtful(slots->host) ? 1 : slots->per_slot;
    size_t free = at_most(allowed(slots), runner_processes(slots->runner) + slots->single.count);
    size_t room = is_resident(slots) ? runner_room(slots->runner, free) : free * per_slot;
    room = at_most(room, slots->shared.count + signature_check_count(slots->signature_check));
    size_t most = at_most(MOST_TASKS, slots_taken(slots));
    if (signature_check_has_lone_task(slots->signature_check)) {
        return 0; /* it will run alone on this worker */
    }
    return room < most ? room : most;
}

/* Returns how many tasks may wait for a slot beyond the free ones. */
static size_t most_ahead(const struct slots *slots)
{
    size_t concurrency = (size_t)slots->worker->config->queue.concurrency;
    if (slots->average_us >= SHORT_US || slots->max_crashes <= 1 || allowed(slots) < concurrency ||
        batch_of(slots) > 1) {
        return 0;
    }
    size_t in_time = concurrency * (size_t)(EXPECTED_US / (slots->average_us + 1));
    size_t most = SLOT_AHEAD * concurrency > LEAST_AHEAD ? SLOT_AHEAD * concurrency : LEAST_AHEAD;
    return in_time < most ? in_time : most;
}

/* Returns how many tasks wait for a slot. With batches, those that share one wait to be more. */
static size_t waiting_for_slot(const struct slots *slots)
{
    return slots->single.count + (is_resident(slots) ? slots->shared.count : 0);
}

size_t slots_ahead(const struct slots *slots)
{
    if (signature_check_has_lone_task(slots->signature_check)) {
        return 0;
    }
    size_t free = at_most(allowed(slots), runner_processes(slots->runner) + slots->single.count);
    return at_most(most_ahead(slots),
                   waiting_for_slot(slots) +
                       at_most(signature_check_count(slots->signature_check), free));
}

bool slots_busy(const struct slots *slots)
{
    size_t most = most_ahead(slots);
    return most > 0 ? waiting_for_slot(slots) > most / 2
                    : runner_processes(slots->runner) >
                          (size_t)slots->worker->config->queue.concurrency / 2;
}

/* ---- starting ---- */

static void put_back(void *context, struct task *task)
{
    struct slots *slots = context;
    outcomes_put_back(slots->outcomes, task->token, false);
    task_free(task);
}

/* Reserves memory for the outcomes of the running attempts and `count` more. Returns 0, or −1. */
static int reserve(struct slots *slots, size_t count)
{
    return outcomes_reserve(slots->outcomes, runner_count(slots->runner) + count);
}

static void refuse(void *context, struct task *task, const char *reason)
{
    struct slots *slots = context;
    if (reserve(slots, 1) || runner_refuse(slots->runner, task, reason)) {
        put_back(slots, task);
    }
}

static bool has_free_slot(const struct slots *slots)
{
    return runner_processes(slots->runner) < allowed(slots);
}

/* Starts one process for all these tasks; or hands the only one to a resident process. */
static void start(struct slots *slots, const struct claimed_task *tasks, size_t count,
                  bool resident)
{
    bool alone = tasks[0].task->alone;
    for (size_t i = 0; slots->worker->config->log.started && i < count; i++) {
        task_log_started(tasks[i].task);
    }
    slots->alone += alone;
    if (reserve(slots, count) ||
        (resident ? runner_hand_over(slots->runner, tasks, has_free_slot(slots))
                  : runner_start(slots->runner, tasks, count))) {
        slots->alone -= alone;
        for (size_t i = 0; i < count; i++) {
            put_back(slots, tasks[i].task);
        }
        return;
    }
    const struct attempt *newest = runner_first(slots->runner);
    for (size_t i = 0; i < count && newest; i++, newest = LIST_NEXT(newest, link)) {
        figures_started(slots->worker->figures, newest->task);
        lease_watch(slots->lease, newest);
    }
}

/* Returns false if it is too late for the task: by its lease, and the task went back; or by its
 * signature, and the task was refused. */
static bool set_claimed(struct slots *slots, struct claimed_task *claimed, struct task *task,
                        int64_t sent_ns)
{
    *claimed = (struct claimed_task){.task = task,
                                     .lease_deadline_ns = lease_deadline(slots->lease, sent_ns)};
    if (task_is_too_late(task)) {
        refuse(slots, task, TASK_TOO_LATE);
        return false;
    }
    if (lease_has_room(slots->lease, claimed->lease_deadline_ns)) {
        return true;
    }
    put_back(slots, task);
    return false;
}

static void start_single(struct slots *slots, struct task *task, int64_t sent_ns)
{
    struct claimed_task claimed;
    if (set_claimed(slots, &claimed, task, sent_ns)) {
        start(slots, &claimed, 1, false);
    }
}

static bool can_hand_over(const struct slots *slots)
{
    return allowed(slots) > 0 && runner_can_hand_over(slots->runner, has_free_slot(slots));
}

static void hand_over(struct slots *slots, struct task *task, int64_t sent_ns)
{
    struct claimed_task claimed;
    if (set_claimed(slots, &claimed, task, sent_ns)) {
        start(slots, &claimed, 1, true);
    }
}

/* Starts one process for as many tasks as may share it. The more it takes, the more the next claims
 * ask for. */
static void start_shared(struct slots *slots)
{
    struct claimed_task tasks[CONFIG_BATCH_MOST];
    size_t count = 0, size = 0, batch = batch_of(slots);
    while (slots->shared.count > 0 && count < batch &&
           (count == 0 || size + waiting_first(&slots->shared)->size <= BATCH_BYTES)) {
        struct waiting_task next = waiting_take(&slots->shared);
        count += set_claimed(slots, &tasks[count], next.task, next.sent_ns);
        size += next.size;
    }
    if (count > 0) {
        start(slots, tasks, count, false);
        slots->per_slot = slots->per_slot > 2 * count ? slots->per_slot : 2 * count;
        slots->per_slot = slots->per_slot < batch ? slots->per_slot : batch;
    }
}

void slots_ended(struct slots *slots, const struct attempt *attempt)
{
    if (attempt->task->alone && slots->alone > 0) {
        slots->alone--;
    }
    enum cause cause = attempt->ending.cause;
    if (cause == CAUSE_REFUSED || cause == CAUSE_HOST || cause == CAUSE_NO_PROGRAM) {
        return; /* it never ran */
    }
    slots->average_us += (attempt->duration_us - slots->average_us) / AVERAGE_SHARE;
}

/* ---- waiting ---- */

static int64_t slot_wait_ns(const struct slots *slots)
{
    /* for a resident process that starts, tasks wait longer than for one that is busy */
    bool starts = is_resident(slots) && runner_processes(slots->runner) == 0;
    return batch_of(slots) > 1 || starts ? lease_deadline(slots->lease, 0) / SLOT_WAIT_SHARE
                                         : SLOT_WAIT_MS * CLOCK_NS_PER_MS;
}

/* Returns how long a batch waits to be filled. It does not wait if a task is dead-lettered after
 * its first crash, since waiting tasks have not run yet. */
static int64_t fill_ns(const struct slots *slots)
{
    int64_t wanted_ns =
        slots->max_crashes > 1 ? slots->worker->config->task.batch_wait_ms * CLOCK_NS_PER_MS : 0;
    int64_t most_ns = lease_deadline(slots->lease, 0) / FILL_SHARE;
    return wanted_ns < most_ns ? wanted_ns : most_ns;
}

static bool is_filled(const struct slots *slots, int64_t now_ns)
{
    const struct waiting *shared = &slots->shared;
    return shared->count > 0 &&
           (is_resident(slots) || shared->count >= batch_of(slots) || shared->size >= BATCH_BYTES ||
            waiting_first(shared)->taken_ns + fill_ns(slots) <= now_ns);
}

static void set_timer(struct slots *slots)
{
    const struct waiting *single = &slots->single, *shared = &slots->shared;
    int64_t now_ns = clock_boot_ns(), until_ns = INT64_MAX;
    timer_stop(&slots->timer);
    if (single->count > 0) {
        until_ns = waiting_first(single)->taken_ns + slot_wait_ns(slots);
    }
    if (shared->count > 0) {
        int64_t wait_ns = is_filled(slots, now_ns) ? slot_wait_ns(slots) : fill_ns(slots);
        int64_t end_ns = waiting_first(shared)->taken_ns + wait_ns;
        until_ns = end_ns < until_ns ? end_ns : until_ns;
    }
    if (until_ns < INT64_MAX) {
        int64_t left_ns = until_ns - now_ns;
        timer_start_ns(&slots->timer, left_ns);
    }
}

static void keep(struct slots *slots, struct waiting *waiting, struct task *task, int64_t sent_ns)
{
    if (waiting_add(waiting, task, sent_ns, clock_boot_ns())) {
        put_back(slots, task);
    } else if (waiting->count == 1) {
        set_timer(slots);
    }
}

/* Tasks that a claim brought for batches, but that cannot share a process: only some may wait. The
 * rest goes back at once, and the next claims ask for less. */
static void keep_single(struct slots *slots, struct task *task, int64_t sent_ns)
{
    size_t concurrency = (size_t)slots->worker->config->queue.concurrency;
    size_t most = concurrency > LEAST_AHEAD ? concurrency : LEAST_AHEAD;
    if (is_shared(slots) && slots->single.count >= most) {
        slots->per_slot = 1;
        put_back(slots, task);
        return;
    }
    keep(slots, &slots->single, task, sent_ns);
}

static bool is_fit(const struct slots *slots, struct task *task, char *reason, size_t reason_size)
{
    const struct config_task *config = &slots->worker->config->task;
    return task_check(task, config->command, reason, reason_size) &&
           runner_accepts(slots->runner, task, reason, reason_size) &&
           (!is_shared(slots) || batch_fits(config->batch_format, task, reason, reason_size));
}

/* The claim was in flight while older tasks went back: the task must not overtake them. */
static bool came_after_return(const struct slots *slots, int64_t sent_ns)
{
    return batch_of(slots) == 1 && sent_ns < slots->back_ns;
}

/* Returns whether the task may run in a process that other tasks have, too. */
static bool may_share(const struct slots *slots, const struct task *task)
{
    const struct config *config = slots->worker->config;
    return is_resident(slots)
               ? batch_may_reside(config, task, runner_reads_residents(slots->runner))
               : batch_of(slots) > 1 && batch_may_share(config, task);
}

/* Starts a task that passed all checks, or keeps it until a slot is free. */
static void place(void *context, struct task *task, int64_t sent_ns)
{
    struct slots *slots = context;
    size_t most = allowed(slots);
    if (most == 0 || came_after_return(slots, sent_ns)) {
        put_back(slots, task);
    } else if (may_share(slots, task)) {
        if (waiting_for_slot(slots) == 0 && is_resident(slots) && can_hand_over(slots)) {
            hand_over(slots, task, sent_ns);
        } else {
            keep(slots, &slots->shared, task, sent_ns);
        }
    } else if (slots->single.count > 0 || runner_processes(slots->runner) >= most) {
        keep_single(slots, task, sent_ns);
    } else {
        start_single(slots, task, sent_ns);
    }
}

/* Returns the maximum of a task's own value; 0: none. `own` is the value of the config. */
static int64_t maximum(const struct config *config, int64_t most, int64_t own)
{
    if (most == 0 && config->security.commands == CONFIG_COMMANDS_LISTED) {
        return own;
    }
    return most == CONFIG_UNLIMITED ? 0 : most;
}

/* Lowers what the task asks for to what the config allows. */
static void lower(const struct worker_context *worker, struct task *task)
{
    const struct config *config = worker->config;
    int64_t timeout_ms = maximum(config, config->task.timeout_max_ms, config->task.timeout_ms);
    int64_t attempts = maximum(config, config->retry.attempts_max, config->retry.max_attempts);
    if (timeout_ms > 0 &&
        (task->timeout_ms == 0 || task->timeout_ms > timeout_ms)) { /* 0: it asks for none */
        task->timeout_ms = timeout_ms;
        task_log_lowered(worker->refusals, task,
                         "its timeout is above [task] timeout_max: lowered");
    }
    if (attempts > 0 && task->max_attempts > attempts) {
        task->max_attempts = attempts;
        task_log_lowered(worker->refusals, task,
                         "its max_attempts is above [retry] attempts_max: lowered");
    }
    if (task->unlaned) {
        task_log_lowered(worker->refusals, task,
                         "its lane has no settings, and [lanes] only is named: ignored");
    }
}

void slots_take(struct slots *slots, struct task *task, int64_t sent_ns)
{
    char reason[160];
    if (allowed(slots) == 0) {
        put_back(slots, task);
    } else if (!is_fit(slots, task, reason, sizeof reason)) {
        refuse(slots, task, reason);
    } else {
        lower(slots->worker, task);
        if (signature_check_is_wanted(slots->signature_check)) {
            signature_check_take(slots->signature_check, task, sent_ns);
        } else {
            place(slots, task, sent_ns);
        }
    }
}

void slots_put_back_waiting(struct slots *slots)
{
    while (slots->single.count > 0) {
        put_back(slots, waiting_take(&slots->single).task);
    }
    while (slots->shared.count > 0) {
        put_back(slots, waiting_take(&slots->shared).task);
    }
    signature_check_put_back(slots->signature_check);
    timer_stop(&slots->timer);
}

/* Hands the task that has waited longest to a resident process. Returns false if none can take it.
 */
static bool hand_over_next(struct slots *slots)
{
    bool can = can_hand_over(slots);
    if (can) {
        struct waiting_task first = waiting_take(&slots->shared);
        hand_over(slots, first.task, first.sent_ns);
    }
    return can;
}

/* Starts the task or batch that has waited longest. Returns false if none is ready, or if it has no
 * slot. A resident process that has a slot may take a task without another one. */
static bool start_next(struct slots *slots, int64_t now_ns)
{
    bool filled = is_filled(slots, now_ns), has_slot = has_free_slot(slots);
    if (!has_slot && !(filled && is_resident(slots))) {
        return false;
    }
    if (slots->single.count > 0 && (!filled || waiting_first(&slots->single)->taken_ns <=
                                                   waiting_first(&slots->shared)->taken_ns)) {
        if (!has_slot) {
            return false;
        }
        struct waiting_task first = waiting_take(&slots->single);
        start_single(slots, first.task, first.sent_ns);
        return true;
    }
    if (filled && is_resident(slots)) {
        return hand_over_next(slots);
    }
    if (filled) {
        start_shared(slots);
    }
    return filled;
}

void slots_turn(struct slots *slots)
{
    signature_check_turn(slots->signature_check);
    if (is_resident(slots) && allowed(slots) > 0) {
        runner_keep_residents(slots->runner, slots->shared.count);
    }
    if (slots->single.count + slots->shared.count + signature_check_count(slots->signature_check) ==
        0) {
        return;
    }
    int64_t now_ns = clock_boot_ns();
    while (start_next(slots, now_ns)) {
    }
    if (allowed(slots) == 0) {
        slots_put_back_waiting(slots);
    } else if (is_shared(slots) || !timer_runs(&slots->timer)) {
        set_timer(slots);
    }
}

/* Puts back tasks that have waited too long. Full batches start in the turn that this timer
 * causes. */
static void on_timer(void *context)
{
    struct slots *slots = context;
    struct waiting *const both[] = {&slots->single, &slots->shared};
    int64_t now_ns = clock_boot_ns(), since_ns = now_ns - slot_wait_ns(slots);
    for (int i = 0; i < 2; i++) {
        while (both[i]->count > 0 && waiting_first(both[i])->taken_ns <= since_ns) {
            put_back(slots, waiting_take(both[i]).task);
            slots->average_us = NO_TIME_US;
            slots->per_slot = 1;
            slots->back_ns = now_ns;
        }
    }
    /* younger tasks go back too, so that they run after those */
    bool follows = batch_of(slots) == 1 && slots->back_ns == now_ns;
    for (int i = 0; i < 2; i++) {
        while (follows && both[i]->count > 0) {
            put_back(slots, waiting_take(both[i]).task);
        }
    }
}

void slots_tokens(const struct slots *slots, struct token_list *list)
{
    waiting_tokens(&slots->single, list);
    waiting_tokens(&slots->shared, list);
    signature_check_tokens(slots->signature_check, list);
}

void slots_remove(struct slots *slots, const struct token_set *lost,
                  const struct token_set *cancelled)
{
    if (lost->count + cancelled->count > 0) {
        signature_check_remove(slots->signature_check, lost, cancelled);
        waiting_remove(&slots->single, lost, cancelled, put_back, slots);
        waiting_remove(&slots->shared, lost, cancelled, put_back, slots);
    }
}

void slots_down(struct slots *slots)
{
    waiting_free(&slots->single);
    waiting_free(&slots->shared);
    signature_check_down(slots->signature_check);
    timer_stop(&slots->timer);
}

/* ---- creation and reload ---- */

struct slots *slots_new(struct worker_context *worker, struct runner *runner, struct lease *lease,
                        struct host *host, struct outcomes *outcomes)
{
    struct slots *slots = calloc(1, sizeof *slots);
    if (slots) {
        const struct signature_check_events signature_check_events = {
            .passed = place, .refused = refuse, .put_back = put_back, .context = slots};
        slots->signature_check = signature_check_new(worker, host, &signature_check_events);
        if (!slots->signature_check) {
            free(slots);
            return NULL;
        }
        slots->worker = worker;
        slots->runner = runner;
        slots->lease = lease;
        slots->host = host;
        slots->outcomes = outcomes;
        slots->average_us = NO_TIME_US;
        slots->per_slot = batch_of(slots);
        timer_init(&slots->timer, worker->loop, on_timer, slots);
    }
    return slots;
}

/* Returns whether the new config may refuse, or start in another way, a task that passed the
 * checks. */
static bool checks_differ(const struct config *former_config, const struct config *config)
{
    const struct config_task *former = &former_config->task, *task = &config->task;
    const struct config_security *security = &config->security;
    return security->commands != former_config->security.commands ||
           security->commands == CONFIG_COMMANDS_LISTED ||
           security->signatures == CONFIG_SIGNATURES_REQUIRED ||
           former_config->security.signatures == CONFIG_SIGNATURES_REQUIRED ||
           former->timeout_max_ms != task->timeout_max_ms ||
           former_config->retry.attempts_max != config->retry.attempts_max ||
           !former->command != !task->command || former->batch != task->batch ||
           former->resident != task->resident || former->batch_format != task->batch_format;
}

void slots_reload(struct slots *slots, const struct config *former)
{
    if (checks_differ(former, slots->worker->config)) {
        slots_put_back_waiting(slots);
        slots->per_slot = batch_of(slots);
    }
    signature_check_reload(slots->signature_check);
}

void slots_set_max_crashes(struct slots *slots, int64_t max_crashes)
{
    slots->max_crashes = max_crashes;
}

void slots_free(struct slots *slots)
{
    if (slots) {
        slots_down(slots);
        signature_check_free(slots->signature_check);
        free(slots);
    }
}
