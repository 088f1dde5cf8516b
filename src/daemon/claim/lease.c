/*
 * Renews leases with each heartbeat, ends lost and cancelled tasks, and enforces local deadlines.
 */
#include "daemon/claim/lease.h"

#include <ev.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_watch.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/process/descriptor.h"
#include "base/timer.h"
#include "base/units.h"
#include "config/lease_rule.h"
#include "daemon/report/figures.h"
#include "daemon/report/task_log.h"
#include "queue/calls.h"
#include "queue/replies.h"

#define RENEW_MOST 500 /* tokens in one call: Redis does nothing else meanwhile */
#define LATE_SHARE 12  /* of the lease: a heartbeat this late means that leatd was stopped */
#define REPORT_MS 1000 /* between two reports, at the least */

struct lease {
    struct worker_context *worker;
    struct runner *runner;
    struct lease_events events;

    int64_t watchdog_ms;
    int64_t former_ms; /* the lease before it was raised, until a renewal is answered; 0: none */
    int64_t longer_ms; /* the lease before it was lowered; 0: none */
    int64_t longer_until_ns; /* until when other workers' tasks may have it */
    uint64_t renewal;        /* the number of the last renewal sent */
    size_t awaited;          /* replies to it that have not come */
    bool complete;           /* all of it was sent, and every reply could be read */
    bool repeat;             /* renew again when all replies have come */
    int64_t renew_sent_ns;
    int64_t turn_ns;    /* when the loop last turned */
    int64_t watched_ns; /* when the deadline timer fires; 0: it does not */
    struct timer heartbeat, report;
    int64_t reported_ns;
    bool reporting; /* a report is not answered */
    int timer;      /* timerfd of CLOCK_BOOTTIME: libev's timers do not count suspended time */
    struct fd_watch deadline;
    ev_check turn;
};

/* The lease by which deadlines are judged. If it was raised, running tasks have the deadlines of
 * the former one until they are renewed, which the margins of the new one may exceed. */
static int64_t judged_ms(const struct lease *lease)
{
    return lease->former_ms ? lease->former_ms : lease->worker->lease_ms;
}

static int64_t margin_ms(const struct lease *lease)
{
    return lease_rule_margin_ms(judged_ms(lease));
}

static int64_t notice_ms(const struct lease *lease, int64_t lease_ms)
{
    return lease_rule_notice_ms(lease->worker->config->task.kill_grace_ms, lease_ms);
}

bool lease_fits(const struct lease *lease)
{
    return lease_rule_fits(lease->worker->config->task.kill_grace_ms, lease->worker->lease_ms);
}

static void warn_unless_fits(const struct lease *lease)
{
    char whole[48], grace[48], most[48];
    if (lease_fits(lease)) {
        return;
    }
    units_format_duration(lease->worker->lease_ms, whole, sizeof whole);
    units_format_duration(lease->worker->config->task.kill_grace_ms, grace, sizeof grace);
    units_format_duration(lease_rule_longest_grace_ms(lease->worker->lease_ms), most, sizeof most);
    log_text(LOG_ERR,
             "[task] kill_grace (%s) is too long for the queue's lease (%s): claiming nothing; set "
             "kill_grace to %s or less, or a longer lease with leat conf",
             grace, whole, most);
}

int64_t lease_longest_ms(const struct lease *lease)
{
    int64_t longer_ms = clock_boot_ns() < lease->longer_until_ns ? lease->longer_ms : 0;
    return longer_ms > lease->worker->lease_ms ? longer_ms : lease->worker->lease_ms;
}

int64_t lease_deadline(const struct lease *lease, int64_t sent_ns)
{
    return sent_ns + lease->worker->lease_ms * CLOCK_NS_PER_MS;
}

bool lease_has_room(const struct lease *lease, int64_t deadline_ns)
{
    int64_t notice = notice_ms(lease, lease->worker->lease_ms);
    return clock_boot_ns() < deadline_ns - notice * CLOCK_NS_PER_MS;
}

/* ---- local deadlines ---- */

static bool is_killed(const struct attempt *attempt)
{
    return attempt->state != JOB_CLAIMED && !job_is_under_way(attempt->state) &&
           attempt->state != JOB_ENDING;
}

/* Returns whether the attempt waits to run again in half of its batch. */
static bool waits(const struct attempt *attempt)
{
    return attempt->state == JOB_CLAIMED;
}

/* Returns when the attempt's deadline needs the next action. One that waits could not be ended in
 * time if it started later than one that runs has to be told to end. */
static int64_t next_action_ns(const struct lease *lease, const struct attempt *attempt)
{
    /* if a new lease is too short for the grace, running tasks get less grace, but are not ended
     * while they are renewed */
    int64_t margin = margin_ms(lease), whole = judged_ms(lease);
    bool fits = lease_rule_fits(lease->worker->config->task.kill_grace_ms, whole);
    int64_t notice = fits ? notice_ms(lease, whole) : whole / 2;
    int64_t before = job_is_under_way(attempt->state) || waits(attempt) ? notice : margin;
    return attempt->lease_deadline_ns - before * CLOCK_NS_PER_MS;
}

/* at_ns: 0 stops the timer. */
static void set_deadline_timer(struct lease *lease, int64_t at_ns)
{
    const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(at_ns / CLOCK_NS_PER_S),
                                               .tv_nsec = (long)(at_ns % CLOCK_NS_PER_S)}};
    lease->watched_ns = at_ns;
    /* fails only for an invalid descriptor or time */
    (void)timerfd_settime(lease->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void enforce(struct lease *lease, struct attempt *attempt, int64_t now_ns)
{
    if (waits(attempt) ||
        now_ns >= attempt->lease_deadline_ns - margin_ms(lease) * CLOCK_NS_PER_MS) {
        runner_end(lease->runner, attempt, JOB_KILL_NOW);
    } else if (job_is_under_way(attempt->state)) {
        struct log_field fields[3] = {LOG_TEXT("LEAT_TASK", attempt->task->tid),
                                      LOG_TEXT("LEAT_EVENT", "lease-lost")};
        size_t count = 2 + trace_log_field(&attempt->task->trace, &fields[2]);
        log_event(LOG_WARNING, LOG_ID_LEASE_LOST, fields, count,
                  "task %s: terminating it: its lease could not be renewed", attempt->task->tid);
        runner_end(lease->runner, attempt, JOB_LEASE_LOST);
    }
}

void lease_enforce(struct lease *lease)
{
    int64_t now_ns = clock_boot_ns(), earliest = 0;
    struct attempt *next;
    for (struct attempt *attempt = runner_first(lease->runner); attempt; attempt = next) {
        next = LIST_NEXT(attempt, link);
        if (is_killed(attempt)) {
            continue;
        }
        if (now_ns >= next_action_ns(lease, attempt)) {
            bool over = waits(attempt); /* and gone, once it is ended */
            enforce(lease, attempt, now_ns);
            if (over || is_killed(attempt)) {
                continue;
            }
        }
        int64_t action_ns = next_action_ns(lease, attempt);
        earliest = earliest && earliest < action_ns ? earliest : action_ns;
    }
    set_deadline_timer(lease, earliest);
}

static void on_deadline(void *context)
{
    struct lease *lease = context;
    uint64_t fired;
    ssize_t size = read(lease->timer, &fired, sizeof fired);
    (void)size; /* nothing to read: the timer was set again meanwhile */
    lease_enforce(lease);
}

void lease_watch(struct lease *lease, const struct attempt *attempt)
{
    /* new claims have later deadlines than older ones, so mostly nothing changes */
    int64_t action_ns = next_action_ns(lease, attempt);
    if (!lease->watched_ns || action_ns < lease->watched_ns) {
        set_deadline_timer(lease, action_ns);
    }
}

/* ---- renewal ---- */

static void end_lost(struct lease *lease, struct attempt *attempt)
{
    if (job_is_under_way(attempt->state)) {
        struct log_field fields[3] = {LOG_TEXT("LEAT_TASK", attempt->task->tid),
                                      LOG_TEXT("LEAT_EVENT", "lease-lost")};
        size_t count = 2 + trace_log_field(&attempt->task->trace, &fields[2]);
        log_event(LOG_WARNING, LOG_ID_LEASE_LOST, fields, count,
                  "task %s: killing it: lease lost (taken over, or its entry was deleted)",
                  attempt->task->tid);
    }
    runner_end(lease->runner, attempt, JOB_KILL_NOW);
}

static void end_cancelled(struct lease *lease, struct attempt *attempt)
{
    if (job_is_under_way(attempt->state)) {
        struct log_field fields[3] = {LOG_TEXT("LEAT_TASK", attempt->task->tid),
                                      LOG_TEXT("LEAT_EVENT", "cancelling")};
        size_t count = 2 + trace_log_field(&attempt->task->trace, &fields[2]);
        log_event(LOG_NOTICE, NULL, fields, count, "task %s: terminating it: cancelled",
                  attempt->task->tid);
    }
    runner_end(lease->runner, attempt, JOB_CANCEL);
}

/* Kills tasks that the reply names as lost at once, since another worker may start them now. */
static void apply(struct lease *lease, const struct queue_renew_reply *answer)
{
    struct token_set lost = token_set_of(answer->lost);
    struct token_set cancelled = token_set_of(answer->cancelled);
    struct attempt *next;
    bool any = lost.count + cancelled.count > 0;
    for (struct attempt *attempt = any ? runner_first(lease->runner) : NULL; attempt;
         attempt = next) {
        next = LIST_NEXT(attempt, link);
        if (attempt->renewal != lease->renewal) {
            continue;
        }
        if (token_set_has(&lost, attempt->task->token)) {
            attempt->renewal = 0;
            end_lost(lease, attempt);
        } else if (token_set_has(&cancelled, attempt->task->token)) {
            end_cancelled(lease, attempt);
        }
    }
    lease->complete = lease->complete && !lost.failed;
    lease->events.renewed(lease->events.context, &lost, &cancelled);
    token_set_free(&lost);
    token_set_free(&cancelled);
}

/* All replies have come: the renewed tasks have a lease from the time at which it was sent. */
static void extend(struct lease *lease, int64_t sent_ns)
{
    int64_t deadline_ns = lease_deadline(lease, sent_ns);
    for (struct attempt *attempt = runner_first(lease->runner); attempt && lease->complete;
         attempt = LIST_NEXT(attempt, link)) {
        if (attempt->renewal == lease->renewal) {
            attempt->lease_deadline_ns = deadline_ns;
        }
    }
    lease->former_ms = lease->complete ? 0 : lease->former_ms;
    runner_set_lease(lease->runner, judged_ms(lease));
    runner_renewed(lease->runner);
    lease_enforce(lease);
}

static void renew(struct lease *lease);

static void on_renewed(void *context, const struct redisReply *reply)
{
    struct lease *lease = context;
    lease->awaited--;
    struct queue_renew_reply answer;
    if (!session_check(lease->worker->session, reply, queue_renew_read(reply, &answer), "renew")) {
        lease->complete = false; /* other replies may still come */
        return;
    }
    (void)lease_update(lease, answer.lease_ms); /* this renews the tasks */
    apply(lease, &answer);
    if (answer.ended) {
        task_log_ended_by_call(lease->worker->refusals, answer.ended, answer.reasons);
        lease->events.dead_lettered(lease->events.context);
    }
    if (answer.dead_growth > 0) {
        task_log_dead_growth(lease->worker->config->queue.name, answer.dead_growth);
    }
    if (lease->awaited == 0) {
        extend(lease, lease->renew_sent_ns);
        if (lease->repeat) {
            renew(lease);
        }
    }
}

/* Marks the attempts that the next renewal, or a registration, names. */
static void number_attempts(struct lease *lease)
{
    lease->renewal++;
    lease->complete = true;
    for (struct attempt *attempt = runner_first(lease->runner); attempt;
         attempt = LIST_NEXT(attempt, link)) {
        attempt->renewal = lease->renewal;
    }
}

/* Sends as many calls as the tokens need; without tokens one call, for the heartbeat. */
static void send_renewal(struct lease *lease, const struct token_list *list, const char *heartbeat)
{
    lease->renew_sent_ns = clock_boot_ns();
    size_t sent = 0;
    do {
        size_t size = list->count - sent < RENEW_MOST ? list->count - sent : RENEW_MOST;
        queue_renew(&lease->worker->command, lease->worker->queue, lease->worker->consumer,
                    heartbeat, size > 0 ? &list->tokens[sent] : NULL, size);
        if (session_send(lease->worker->session, on_renewed, lease)) {
            lease->complete = false;
            return;
        }
        lease->awaited++;
        sent += size;
    } while (sent < list->count);
}

static void renew(struct lease *lease)
{
    if (lease->awaited > 0 || lease->worker->leaving || !session_is_up(lease->worker->session)) {
        return;
    }
    struct token_list list = {0};
    /* without memory, the next session's registration renews sooner than the next heartbeat would
     */
    const char *heartbeat = session_roll_call(lease->worker->session, &list);
    if (heartbeat) {
        number_attempts(lease);
        send_renewal(lease, &list, heartbeat);
        lease->repeat = false;
    }
    token_list_free(&list);
}

void lease_renew(struct lease *lease)
{
    lease->repeat = lease->awaited > 0;
    renew(lease);
}

/* ---- reports ---- */

/* What Redis has not counted comes with the next heartbeat. So an error needs nothing more, also
 * that of a library which does not have this function yet. A renewal that is in flight has the same
 * figures, and its reply confirms them. */
static void on_reported(void *context, const struct redisReply *reply)
{
    struct lease *lease = context;
    bool known;
    lease->reporting = false;
    if (reply && queue_report_read(reply, &known) == 0 && known && lease->awaited == 0) {
        figures_confirmed(lease->worker->figures);
    }
}

static void on_report(void *context)
{
    struct lease *lease = context;
    struct worker_context *worker = lease->worker;
    if (worker->leaving || !session_is_up(worker->session)) {
        return; /* the next registration tells the same */
    }
    if (lease->awaited > 0 || lease->reporting) {
        timer_start_ms(&lease->report, REPORT_MS);
        return;
    }
    const char *heartbeat = session_roll_call(worker->session, NULL);
    if (heartbeat) {
        lease->reported_ns = clock_boot_ns();
        queue_report(&worker->command, worker->queue, worker->consumer, heartbeat);
        lease->reporting = session_send(worker->session, on_reported, lease) == 0;
    }
}

void lease_counted(struct lease *lease)
{
    if (!timer_runs(&lease->report)) {
        timer_start_ns(&lease->report,
                       lease->reported_ns + REPORT_MS * CLOCK_NS_PER_MS - clock_boot_ns());
    }
}

void lease_registered(struct lease *lease, const struct queue_renew_reply *reply, int64_t sent_ns)
{
    /* nothing can have been claimed between a registration and its reply */
    number_attempts(lease);
    lease->repeat = false;
    apply(lease, reply);
    extend(lease, sent_ns);
}

static void set_heartbeat_timer(struct lease *lease)
{
    int64_t period_ms = lease_rule_heartbeat_ms(lease->worker->lease_ms);
    if (lease->watchdog_ms && lease->watchdog_ms / 2 < period_ms) {
        period_ms = lease->watchdog_ms / 2;
    }
    double period = (double)period_ms / 1000;
    if (!timer_runs(&lease->heartbeat) || lease->heartbeat.watcher.repeat != period) {
        timer_repeat_s(&lease->heartbeat, period);
    }
}

bool lease_update(struct lease *lease, int64_t lease_ms)
{
    int64_t judged = judged_ms(lease);
    if (lease_ms == lease->worker->lease_ms) {
        return false;
    }
    if (lease_ms < lease->worker->lease_ms) {
        lease->longer_ms = lease_longest_ms(lease);
        lease->longer_until_ns = clock_boot_ns() + lease->longer_ms * CLOCK_NS_PER_MS;
    }
    lease->former_ms = judged < lease_ms ? judged : 0;
    lease->worker->lease_ms = lease_ms;
    runner_set_lease(lease->runner, judged_ms(lease));
    set_heartbeat_timer(lease);
    warn_unless_fits(lease);
    return true;
}

static void on_heartbeat(void *context)
{
    struct lease *lease = context;
    /* a Redis that is slow, or away, is no reason to restart leatd: the session ends in time */
    bool waits_on = session_is_up(lease->worker->session) && lease->awaited > 0 &&
                    clock_boot_ns() >= lease_deadline(lease, lease->renew_sent_ns);
    bool alive = session_has_answer(lease->worker->session) && !waits_on;
    renew(lease);
    lease->events.heartbeat_done(lease->events.context, alive);
}

/* Runs before all other watchers of a turn. If the loop missed a heartbeat, leatd was stopped or
 * starved: expired tasks are ended first, then the renewal is the first command sent. */
static void on_turn(struct ev_loop *loop, ev_check *watcher, int events)
{
    (void)loop;
    (void)events;
    struct lease *lease = watcher->data;
    int64_t now_ns = clock_boot_ns();
    int64_t gap_ms = (now_ns - lease->turn_ns) / CLOCK_NS_PER_MS;
    lease->turn_ns = now_ns;
    if (gap_ms >
        lease_rule_heartbeat_ms(lease->worker->lease_ms) + lease->worker->lease_ms / LATE_SHARE) {
        log_text(LOG_WARNING, "leatd was stopped or starved for %lld ms", (long long)gap_ms);
        lease_enforce(lease);
        renew(lease);
    }
}

/* ---- creation and reload ---- */

struct lease *lease_new(struct worker_context *worker, struct runner *runner, int64_t watchdog_ms,
                        const struct lease_events *events)
{
    struct lease *lease = calloc(1, sizeof *lease);
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (!lease || timer < 0) {
        goto fail;
    }
    lease->worker = worker;
    lease->runner = runner;
    lease->watchdog_ms = watchdog_ms;
    lease->events = *events;
    lease->turn_ns = clock_boot_ns();
    timer_init(&lease->heartbeat, worker->loop, on_heartbeat, lease);
    timer_init(&lease->report, worker->loop, on_report, lease);
    lease->timer = timer;
    fd_watch_init(&lease->deadline, on_deadline, lease);
    ev_check_init(&lease->turn, on_turn);
    ev_set_priority(&lease->turn, EV_MAXPRI);
    lease->turn.data = lease;
    ev_check_start(worker->loop, &lease->turn);
    fd_watch_start(&lease->deadline, worker->loop, timer, EV_READ);
    set_heartbeat_timer(lease);
    runner_set_lease(lease->runner, lease->worker->lease_ms);
    return lease;

fail:
    descriptor_close(&timer);
    free(lease);
    return NULL;
}

void lease_reload(struct lease *lease, const struct config *former)
{
    if (lease_rule_fits(former->task.kill_grace_ms, lease->worker->lease_ms)) {
        warn_unless_fits(lease);
    }
}

void lease_free(struct lease *lease)
{
    if (lease) {
        timer_stop(&lease->heartbeat);
        timer_stop(&lease->report);
        fd_watch_stop(&lease->deadline, lease->worker->loop);
        close(lease->timer);
        ev_check_stop(lease->worker->loop, &lease->turn);
        free(lease);
    }
}
