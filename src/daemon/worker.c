/*
 * Creates the modules of a worker, passes events between them, and stops it.
 */
#include "daemon/worker.h"

#include <ev.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "daemon/claim/admission.h"
#include "daemon/claim/claim_loop.h"
#include "daemon/claim/guard_monitor.h"
#include "daemon/claim/host.h"
#include "daemon/claim/lease.h"
#include "daemon/claim/slots.h"
#include "daemon/heartbeat.h"
#include "daemon/lists/lists.h"
#include "daemon/report/dead_hook.h"
#include "daemon/report/live.h"
#include "daemon/report/outcomes.h"
#include "daemon/report/task_log.h"
#include "daemon/session/session.h"
#include "daemon/stop.h"
#include "daemon/worker_status.h"
#include "exec/runner.h"
#include "queue/calls.h"
#include "queue/replies.h"

#define DEFAULT_MAX_CRASHES 3 /* the library's own value if the setting in conf is invalid */

struct worker {
    struct worker_context context;
    const struct isolation *isolation;
    struct worker_events events;
    struct queue queue;
    struct heartbeat heartbeat;
    struct runner *runner;
    struct outcomes *outcomes;
    struct claim_loop *claim_loop;
    struct lease *lease;
    struct lists *lists;
    struct slots *slots;
    struct host *host;
    struct admission *admission;
    struct guard_monitor *guard_monitor;
    struct stop *stop;
    struct dead_hook *dead_hook;
    struct live *live;
    struct worker_status worker_status;

    bool halved;    /* tasks of a batch run again: watch their leases in the next turn */
    bool renew;     /* renew in the next turn: a task was cancelled, or the status has changed */
    bool lost;      /* the last renewal named a token that is lost */
    bool abandoned; /* see worker_abandon */
    bool unsaid;    /* it stops, and Redis could not be told */
    bool started_sent, ready_sent;
    ev_prepare turn;
};

/* ---- heartbeats and tokens ---- */

static const char *make_heartbeat(void *context)
{
    struct worker *worker = context;
    struct token_list unclaimed = {0};
    outcomes_unclaimed_tokens(worker->outcomes, &unclaimed);
    claim_loop_tokens(worker->claim_loop, &unclaimed);
    worker->heartbeat.fence = claim_loop_fence(worker->claim_loop);
    worker->heartbeat.joined = session_newest(worker->context.session);
    worker->heartbeat.registration = session_registration(worker->context.session);
    worker->heartbeat.lease_ms = worker->heartbeat.joined ? lease_longest_ms(worker->lease) : 0;
    const char *text = heartbeat_text(
        &worker->heartbeat, (size_t)worker->context.config->queue.concurrency,
        slots_most(worker->slots), runner_count(worker->runner),
        worker->context.config->task.kill_grace_ms, worker_status_state(&worker->worker_status),
        worker_status_trouble(&worker->worker_status), &unclaimed);
    token_list_free(&unclaimed);
    return text;
}

static bool has_tasks(void *context)
{
    struct worker *worker = context;
    return runner_count(worker->runner) > 0 || outcomes_count(worker->outcomes) > 0;
}

static void list_tokens(void *context, struct token_list *list)
{
    struct worker *worker = context;
    for (struct attempt *attempt = runner_first(worker->runner); attempt;
         attempt = LIST_NEXT(attempt, link)) {
        token_list_add(list, attempt->task->token);
    }
    outcomes_tokens(worker->outcomes, list);
    claim_loop_tokens(worker->claim_loop, list);
    slots_tokens(worker->slots, list);
}

/* ---- tasks and outcomes ---- */

static void on_ended(void *context, struct attempt *attempt)
{
    struct worker *worker = context;
    struct ending *ending = &attempt->ending;
    if (worker->abandoned && ending->signal == SIGKILL &&
        (ending->cause == CAUSE_KILLED || ending->cause == CAUSE_NO_VERDICT)) {
        ending->cause = CAUSE_SHUTDOWN;
    }
    struct outcome outcome = outcome_decide(&worker->context.config->retry, ending, drand48());
    live_ended(worker->live, attempt, &outcome);
    task_log_ended(worker->context.refusals, attempt, &outcome);
    worker->heartbeat.ended[outcome.verdict]++;
    figures_ended(&worker->heartbeat.figures, attempt);
    lease_counted(worker->lease);
    slots_ended(worker->slots, attempt);
    if (host_ended(worker->host, attempt)) {
        claim_loop_schedule(worker->claim_loop); /* no longer one task at a time */
    }
    outcomes_end(worker->outcomes, attempt, &outcome, worker->context.config->task.result_ttl_ms);
}

static void on_halved(void *context, const struct attempt *attempt, size_t count)
{
    struct worker *worker = context;
    task_log_halved(attempt, count);
    worker->halved = true;
}

static void on_resident(void *context, bool host, pid_t pid, const char *text)
{
    struct worker *worker = context;
    if (host) {
        host_fault(worker->host, NULL, text);
    } else {
        task_log_resident(pid, text);
    }
}

static void on_settled(void *context, const struct pending_outcome *result,
                       enum queue_settled settled, const char *error)
{
    struct worker *worker = context;
    task_log_settled(result, settled, error);
    if (settled == QUEUE_FENCED || (settled == QUEUE_GONE && !result->again)) {
        figures_stale(&worker->heartbeat.figures);
    }
    /* after an outage, other workers may wait until this one names nothing that is lost */
    worker->renew = worker->renew || worker->lost;
    if (settled == QUEUE_VANISHED ||
        (settled == QUEUE_OK && result->outcome.verdict == VERDICT_DEAD)) {
        dead_hook_fetch(worker->dead_hook);
    }
}

/* ---- the session ---- */

static void send_started(struct worker *worker)
{
    if (!worker->started_sent && session_has_answer(worker->context.session)) {
        worker->started_sent = true;
        worker->events.started(worker->events.context);
    }
    if (!worker->ready_sent && session_is_up(worker->context.session)) {
        worker->ready_sent = true;
        worker->events.ready(worker->events.context);
    }
}

static void on_followed(void *context, const char *tid, int64_t for_ms)
{
    const struct worker *worker = context;
    live_follow(worker->live, tid, for_ms);
}

static void on_up(void *context, const struct queue_renew_reply *reply, int64_t sent_ns)
{
    struct worker *worker = context;
    worker->context.leaving = false;
    (void)lease_update(worker->lease, reply->lease_ms); /* the registration has renewed the tasks */
    lease_registered(worker->lease, reply, sent_ns);
    slots_set_max_crashes(worker->slots,
                          queue_setting_number(reply, "max_crashes", DEFAULT_MAX_CRASHES));
    queue_registered_followed(reply, on_followed, worker);
    claim_loop_up(worker->claim_loop);
    lists_up(worker->lists);
    dead_hook_retry(worker->dead_hook);
    send_started(worker);
}

static void on_down(void *context)
{
    struct worker *worker = context;
    worker->context.leaving = false;
    claim_loop_down(worker->claim_loop);
    lists_down(worker->lists);
    live_down(worker->live);
    slots_down(worker->slots);
    send_started(worker);
}

static void on_woken(void *context, const struct queue_wakeup *wakeup)
{
    struct worker *worker = context;
    claim_loop_wakeup(worker->claim_loop, wakeup);
    worker->renew = worker->renew || wakeup->cancel;
    queue_wakeup_followed(wakeup, on_followed, worker);
}

static void on_renewed(void *context, const struct token_set *lost,
                       const struct token_set *cancelled)
{
    struct worker *worker = context;
    worker->lost = lost->count > 0;
    figures_confirmed(&worker->heartbeat.figures);
    slots_remove(worker->slots, lost, cancelled);
    claim_loop_forget(worker->claim_loop, lost);
}

static void on_dead_lettered(void *context)
{
    const struct worker *worker = context;
    dead_hook_fetch(worker->dead_hook);
}

static void on_fatal(void *context, int exit_code)
{
    struct worker *worker = context;
    worker->events.stopped(worker->events.context, exit_code);
}

static void on_heartbeat_done(void *context, bool alive)
{
    struct worker *worker = context;
    if (alive) {
        worker->events.alive(worker->events.context);
    }
}

/* ---- opening, closing, stopping ---- */

static void stopped(struct worker *worker, int exit_code)
{
    const uint64_t *ended = worker->heartbeat.ended;
    stop_finish(worker->stop);
    guard_monitor_stop(worker->guard_monitor, exit_code == EX_OK && !worker->unsaid);
    refusals_flush(worker->context.refusals);
    log_event(LOG_INFO, LOG_ID_WORKER_STOPPED, NULL, 0,
              "stopped: %" PRIu64 " succeeded, %" PRIu64 " retried, %" PRIu64 " dead, %" PRIu64
              " returned, %" PRIu64 " cancelled",
              ended[VERDICT_SUCCESS], ended[VERDICT_RETRY], ended[VERDICT_DEAD],
              ended[VERDICT_RELEASE], ended[VERDICT_CANCELLED]);
    worker->events.stopped(worker->events.context, exit_code);
}

static void on_end(void *context, enum job_event event)
{
    struct worker *worker = context;
    struct attempt *next;
    for (struct attempt *attempt = runner_first(worker->runner); attempt; attempt = next) {
        next = LIST_NEXT(attempt, link);
        runner_end(worker->runner, attempt, event);
    }
    runner_end_residents(worker->runner, event);
    dead_hook_end(worker->dead_hook, event);
}

static void on_give_up(void *context)
{
    struct worker *worker = context;
    log_text(LOG_ERR,
             "stopping: giving up: %zu tasks still run, and %zu outcomes were not accepted by "
             "Redis; the leases of these tasks will expire",
             runner_count(worker->runner), outcomes_count(worker->outcomes));
    stopped(worker, EX_TEMPFAIL);
}

static void leave(struct worker *worker);

static void left(struct worker *worker)
{
    if (stop_has_begun(worker->stop)) {
        stopped(worker, EX_OK);
    } else {
        worker->context.leaving = true; /* until the session has ended */
        session_left(worker->context.session);
    }
}

static void on_left(void *context, const struct redisReply *reply)
{
    struct worker *worker = context;
    worker->context.leaving = false;
    if (!session_check(worker->context.session, reply, 0, "leaving")) {
        return;
    }
    struct queue_requeue_reply answer;
    if (!queue_requeue_read(reply, &answer) && answer.more) {
        leave(worker);
    } else {
        left(worker);
    }
}

/* Returns everything pending for this consumer to the queue, and removes the consumer. */
static void leave(struct worker *worker)
{
    queue_requeue(&worker->context.command, &worker->queue, worker->heartbeat.consumer, false);
    worker->context.leaving = session_send(worker->context.session, on_left, worker) == 0;
}

static void check_left(struct worker *worker)
{
    if (!(stop_has_begun(worker->stop) || worker->context.moving) || worker->context.leaving ||
        runner_count(worker->runner) > 0 || outcomes_count(worker->outcomes) > 0 ||
        !dead_hook_is_quiet(worker->dead_hook) ||
        (stop_has_begun(worker->stop) && runner_residents(worker->runner) > 0)) {
        return;
    }
    if (session_is_away(worker->context.session)) {
        log_text(LOG_NOTICE, "leaving without Redis: no outcome is left to send");
        worker->unsaid = stop_has_begun(worker->stop);
        left(worker);
    } else if (session_is_up(worker->context.session) && claim_loop_is_quiet(worker->claim_loop)) {
        if (figures_are_left(&worker->heartbeat.figures)) {
            lease_renew(worker->lease); /* its reply causes the next turn */
        } else {
            leave(worker);
        }
    }
}

void worker_stop(struct worker *worker)
{
    lists_close(worker->lists);
    dead_hook_close(worker->dead_hook);
    runner_close_residents(worker->runner);
    stop_advance(worker->stop);
    worker->renew |= runner_count(worker->runner) > 0; /* with the new state */
}

void worker_retire(struct worker *worker)
{
    lists_close(worker->lists);
    dead_hook_close(worker->dead_hook);
    runner_close_residents(worker->runner);
    stop_retire(worker->stop);
    worker->renew = true; /* with the new state */
}

uint32_t worker_slots_used(const struct worker *worker)
{
    return slots_are_closed(worker->slots) ? UINT32_MAX
                                           : (uint32_t)runner_processes(worker->runner);
}

void worker_set_others(struct worker *worker, uint32_t slots)
{
    worker->context.others = slots;
    claim_loop_schedule(worker->claim_loop); /* there may be room now */
}

void worker_abandon(struct worker *worker)
{
    worker->abandoned = true;
}

int64_t worker_stop_ms(const struct worker *worker)
{
    return stop_left_ms(worker->stop);
}

/* ---- each turn of the loop ---- */

/* Decides whether tasks may be claimed and started. A new state of pressure is sent with a renewal
 * at once; an idle worker does not look for pressure. */
static void decide(struct worker *worker)
{
    struct worker_context *context = &worker->context;
    if (session_is_up(context->session) && !claim_loop_is_waiting(worker->claim_loop) &&
        admission_check(worker->admission)) {
        worker->renew = true;
    }
    bool may_claim = worker_status_obstacle(&worker->worker_status) == OBSTACLE_NONE;
    if (may_claim && !context->may_claim) {
        claim_loop_schedule(worker->claim_loop);
    }
    context->may_claim = may_claim;
}

/* Sends the outcomes and the next claim of one turn in one write. */
static void on_turn(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    (void)loop;
    (void)events;
    struct worker *worker = watcher->data;

    if (worker->halved) {
        worker->halved = false;
        lease_enforce(worker->lease);
    }
    decide(worker);

    /* outcomes are sent with the next claim, which may wait for more of them; a batch has many
     * already */
    slots_turn(worker->slots);
    dead_hook_turn(worker->dead_hook);
    if (worker->renew && !claim_loop_is_claiming(worker->claim_loop)) {
        /* the reply to a claim may bring the cancelled task itself */
        worker->renew = false;
        lease_renew(worker->lease);
    }
    if (!stop_has_begun(worker->stop) && worker->context.config->task.batch == 1 &&
        (claim_loop_is_claiming(worker->claim_loop) ||
         (slots_busy(worker->slots) && outcomes_coalesce(worker->outcomes)))) {
        return;
    }
    /* output before outcomes: a client that sees the result finds the output complete */
    live_flush(worker->live);
    outcomes_flush(worker->outcomes);
    if (!worker->context.leaving) {
        claim_loop_turn(worker->claim_loop);
    }
    outcomes_flush(worker->outcomes); /* tokens that claim_loop_turn put back */
    check_left(worker);
}

/* ---- creation, reload, end ---- */

static int create_parts(struct worker *worker, const struct rlimit *nofile, int64_t watchdog_ms)
{
    struct worker_context *context = &worker->context;
    const struct session_events session_events = {.tokens = list_tokens,
                                                  .has_tasks = has_tasks,
                                                  .heartbeat = make_heartbeat,
                                                  .up = on_up,
                                                  .down = on_down,
                                                  .woken = on_woken,
                                                  .fatal = on_fatal,
                                                  .context = worker};
    const struct runner_events runner_events = {.ended = on_ended,
                                                .halved = on_halved,
                                                .stuck = task_log_stuck,
                                                .resident = on_resident,
                                                .homeless = task_log_home_inaccessible,
                                                .context = worker};
    const struct outcomes_events outcomes_events = {.settled = on_settled, .context = worker};
    const struct lease_events lease_events = {.renewed = on_renewed,
                                              .dead_lettered = on_dead_lettered,
                                              .heartbeat_done = on_heartbeat_done,
                                              .context = worker};
    const struct stop_events stop_events = {
        .end = on_end, .give_up = on_give_up, .context = worker};

    context->refusals = refusals_new(context);
    worker->host = host_new(context);
    worker->admission = admission_new(context);
    worker->stop = stop_new(context, &stop_events);
    context->session = session_new(context, &session_events);
    worker->runner =
        runner_new(context->loop, context->config, context->consumer, nofile, &runner_events);
    if (!context->refusals || !worker->host || !worker->admission || !worker->stop ||
        !context->session || !worker->runner) {
        return -1;
    }
    runner_set_cgroups(worker->runner, worker->isolation->cgroups);
    worker->dead_hook = dead_hook_new(context, worker->runner);
    worker->live = live_new(context, worker->runner);
    worker->outcomes = outcomes_new(context, &outcomes_events);
    worker->lease = lease_new(context, worker->runner, watchdog_ms, &lease_events);
    worker->lists = lists_new(context);
    if (!worker->dead_hook || !worker->live || !worker->outcomes || !worker->lease ||
        !worker->lists) {
        return -1;
    }
    worker->slots =
        slots_new(context, worker->runner, worker->lease, worker->host, worker->outcomes);
    worker->guard_monitor =
        guard_monitor_new(context, worker->isolation, worker->host, worker->runner);
    if (!worker->slots || !worker->guard_monitor) {
        return -1;
    }
    worker->claim_loop = claim_loop_new(context, worker->slots, worker->lease, worker->outcomes,
                                        worker->dead_hook, worker->guard_monitor);
    worker->worker_status = (struct worker_status){.context = context,
                                                   .session = context->session,
                                                   .stop = worker->stop,
                                                   .host = worker->host,
                                                   .admission = worker->admission,
                                                   .outcomes = worker->outcomes,
                                                   .lease = worker->lease,
                                                   .claim_loop = worker->claim_loop};
    return worker->claim_loop ? 0 : -1;
}

struct worker *worker_new(struct ev_loop *loop, const struct config *config,
                          const struct rlimit *nofile, const struct isolation *isolation,
                          int64_t watchdog_ms, bool waits, const struct worker_events *events)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        return NULL;
    }
    worker->context = (struct worker_context){.loop = loop,
                                              .config = config,
                                              .queue = &worker->queue,
                                              .figures = &worker->heartbeat.figures,
                                              .consumer = worker->heartbeat.consumer,
                                              .lease_ms = config->queue.lease_ms,
                                              .waiting = waits};
    worker->isolation = isolation;
    worker->events = *events;
    ev_prepare_init(&worker->turn, on_turn);
    worker->turn.data = worker;
    if (heartbeat_init(&worker->heartbeat) ||
        queue_init(&worker->queue, config->queue.stream, config->queue.group) ||
        create_parts(worker, nofile, watchdog_ms)) {
        worker_free(worker);
        return NULL;
    }
    ev_prepare_start(loop, &worker->turn);
    return worker;
}

void worker_start(struct worker *worker)
{
    guard_monitor_start(worker->guard_monitor); /* closes the host if no guard can be started */
    session_start(worker->context.session);
}

void worker_go(struct worker *worker)
{
    worker->context.waiting = false;
    worker->renew = true; /* with the new state */
    if (session_is_up(worker->context.session)) {
        lists_up(worker->lists);
    }
}

int64_t worker_lease_ms(const struct worker *worker)
{
    return worker->context.lease_ms;
}

void worker_set_config(struct worker *worker, const struct config *config)
{
    const struct config *former = worker->context.config;
    worker->context.config = config;
    session_reload(worker->context.session);
    if (worker->context.leaving && !stop_has_begun(worker->stop)) {
        /* the move starts anew, or is called off: either needs a registered worker */
        session_recover(worker->context.session, REDIS_ERROR_LOST, "reloaded while leaving");
    }
    runner_set_config(worker->runner, config);
    lease_reload(worker->lease, former);
    lists_reload(worker->lists, former);
    slots_reload(worker->slots, former);
    admission_reload(worker->admission);
    dead_hook_reload(worker->dead_hook);
    claim_loop_schedule(worker->claim_loop);
}

struct worker_figures worker_figures(const struct worker *worker)
{
    struct worker_figures figures = {.running = runner_count(worker->runner),
                                     .busy = runner_processes(worker->runner),
                                     .others = slots_of_others(worker->slots),
                                     .slots = (size_t)worker->context.config->queue.concurrency,
                                     .batch = (size_t)worker->context.config->task.batch,
                                     .state = worker_status_state(&worker->worker_status),
                                     .trouble = worker_status_trouble(&worker->worker_status),
                                     .connected = session_is_up(worker->context.session)};
    memcpy(figures.ended, worker->heartbeat.ended, sizeof figures.ended);
    return figures;
}

void worker_free(struct worker *worker)
{
    if (!worker) {
        return;
    }
    ev_prepare_stop(worker->context.loop, &worker->turn);
    session_free(
        worker->context.session); /* first, since it calls the pending callbacks of all others */
    claim_loop_free(worker->claim_loop);
    slots_free(worker->slots);
    dead_hook_free(worker->dead_hook);
    runner_free(worker->runner);
    guard_monitor_free(worker->guard_monitor);
    live_free(worker->live);
    lease_free(worker->lease);
    lists_free(worker->lists);
    outcomes_free(worker->outcomes);
    queue_free(&worker->queue);
    heartbeat_free(&worker->heartbeat);
    host_free(worker->host);
    admission_free(worker->admission);
    stop_free(worker->stop);
    refusals_free(worker->context.refusals);
    command_free(&worker->context.command);
    free(worker);
}
