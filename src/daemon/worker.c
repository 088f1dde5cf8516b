#include "daemon/worker.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"
#include "base/log_ids.h"
#include "daemon/admission.h"
#include "daemon/beat.h"
#include "daemon/herald.h"
#include "daemon/host.h"
#include "daemon/intake.h"
#include "daemon/lease.h"
#include "daemon/lists.h"
#include "daemon/live.h"
#include "daemon/record.h"
#include "daemon/results.h"
#include "daemon/session.h"
#include "daemon/slots.h"
#include "daemon/standing.h"
#include "daemon/stop.h"
#include "daemon/warden.h"
#include "exec/runner.h"

#define DEFAULT_MAX_CRASHES 3 /* as the functions take it where conf was damaged by hand */

struct worker {
    struct ev_loop *loop;
    const struct config *config;
    const struct isolation *isolation;
    struct worker_events events;
    struct queue queue;
    struct beat beat;
    struct session *session;
    struct runner *runner;
    struct results *results;
    struct intake *intake;
    struct lease *lease;
    struct lists *lists;
    struct slots *slots;
    struct host *host;
    struct admission *admission;
    struct warden *warden;
    struct stop *stop;
    struct herald *herald;
    struct live *live;
    struct standing standing;
    struct command command;

    bool leaving; /* leat_requeue of our own consumer is under way */
    bool renew;   /* a task was cancelled: to be heard of at once */
    bool ready_told;
    ev_prepare turn;
};

/* ---- what the worker tells of itself ---- */

static const char *make_beat(void *context)
{
    struct worker *worker = context;
    return beat_text(&worker->beat, slots_most(worker->slots), runner_count(worker->runner),
                     standing_state(&worker->standing));
}

static void list_tokens(void *context, struct token_list *list)
{
    struct worker *worker = context;
    for (struct attempt *attempt = runner_first(worker->runner); attempt; attempt = attempt->next) {
        token_list_add(list, attempt->task->token);
    }
    results_tokens(worker->results, list);
    intake_tokens(worker->intake, list);
    slots_tokens(worker->slots, list);
}

/* ---- taking tasks and what becomes of them ---- */

static bool is_closed(void *context)
{
    struct worker *worker = context;
    admission_look(worker->admission);
    return standing_is_closed(&worker->standing);
}

static void put_back(void *context, const char *token)
{
    struct worker *worker = context;
    if (results_put_back(worker->results, token)) {
        session_recover(worker->session, REDIS_ERROR_LOST, "out of memory");
    }
}

static int reserve(void *context, size_t count)
{
    struct worker *worker = context;
    return results_reserve(worker->results, runner_count(worker->runner) + count);
}

static void on_ended(void *context, struct attempt *attempt)
{
    struct worker *worker = context;
    struct outcome outcome = outcome_decide(&worker->config->retry, &attempt->ending, drand48());
    live_ended(worker->live, attempt, &outcome);
    record_ended(attempt, &outcome);
    beat_count(&worker->beat, outcome.verdict);
    slots_ended(worker->slots, attempt);
    host_ended(worker->host, attempt);
    results_end(worker->results, attempt, &outcome, worker->config->task.result_ttl_ms);
}

static void on_settled(void *context, const struct result *result, enum queue_settled settled,
                       const char *error)
{
    struct worker *worker = context;
    record_settled(result, settled, error);
    if (settled == QUEUE_VANISHED ||
        (settled == QUEUE_OK && result_verdict(result) == VERDICT_DEAD)) {
        herald_ask(worker->herald);
    }
}

/* ---- the session ---- */

static void tell_ready(struct worker *worker)
{
    if (!worker->ready_told && session_has_answer(worker->session)) {
        worker->ready_told = true;
        worker->events.ready(worker->events.context);
    }
}

static void on_lease(void *context, int64_t lease_ms)
{
    struct worker *worker = context;
    lease_update(worker->lease, lease_ms);
    session_set_lease(worker->session, lease_ms);
}

static void on_up(void *context, const struct queue_renew_reply *reply, int64_t sent_ns)
{
    struct worker *worker = context;
    on_lease(worker, reply->lease_ms);
    lease_registered(worker->lease, reply, sent_ns);
    slots_set_max_crashes(worker->slots,
                          queue_ruling_number(reply, "max_crashes", DEFAULT_MAX_CRASHES));
    intake_up(worker->intake);
    lists_up(worker->lists);
    herald_look(worker->herald);
    tell_ready(worker);
}

static void on_down(void *context)
{
    struct worker *worker = context;
    worker->leaving = false;
    intake_down(worker->intake);
    lists_down(worker->lists);
    live_down(worker->live);
    slots_down(worker->slots);
    tell_ready(worker);
}

static void on_rang(void *context, const struct queue_rung *rung)
{
    struct worker *worker = context;
    intake_rang(worker->intake, rung);
    worker->renew = worker->renew || rung->cancel;
}

static void on_told(void *context, const struct token_set *lost, const struct token_set *cancelled)
{
    struct worker *worker = context;
    slots_told(worker->slots, lost, cancelled);
    intake_forget(worker->intake, lost);
}

static void on_fatal(void *context, int exit_code)
{
    struct worker *worker = context;
    worker->events.stopped(worker->events.context, exit_code);
}

static void on_beat_done(void *context, bool alive)
{
    struct worker *worker = context;
    if (alive) {
        worker->events.alive(worker->events.context);
    }
}

/* ---- opening, closing and stopping ---- */

static void stopped(struct worker *worker, int exit_code)
{
    const struct beat *beat = &worker->beat;
    stop_finish(worker->stop);
    warden_part(worker->warden, exit_code == EX_OK);
    log_event(LOG_INFO, LOG_ID_WORKER_STOPPED, NULL, 0,
              "stopped: %" PRIu64 " succeeded, %" PRIu64 " retried, %" PRIu64 " dead, %" PRIu64
              " handed back, %" PRIu64 " cancelled",
              beat->succeeded, beat->retried, beat->dead, beat->released, beat->cancelled);
    worker->events.stopped(worker->events.context, exit_code);
}

static void on_close(void *context)
{
    struct worker *worker = context;
    intake_close(worker->intake);
}

static void on_open(void *context)
{
    struct worker *worker = context;
    if (!stop_has_begun(worker->stop)) {
        intake_open(worker->intake);
    }
}

/* The record in Redis says it at once. */
static void on_pressure(void *context)
{
    struct worker *worker = context;
    worker->renew = session_is_up(worker->session);
    if (admission_trouble(worker->admission)) {
        on_close(worker);
    } else {
        on_open(worker);
    }
}

static void on_end(void *context, enum job_event event)
{
    struct worker *worker = context;
    struct attempt *next;
    for (struct attempt *attempt = runner_first(worker->runner); attempt; attempt = next) {
        next = attempt->next;
        runner_end(worker->runner, attempt, event);
    }
    herald_end(worker->herald, event);
}

static void on_give_up(void *context)
{
    struct worker *worker = context;
    log_text(LOG_ERR,
             "giving up: %zu tasks still run and %zu results were not taken by Redis; their leases "
             "will run out",
             runner_count(worker->runner), results_count(worker->results));
    stopped(worker, EX_TEMPFAIL);
}

static void leave(struct worker *worker);

static void on_left(void *context, const struct redisReply *reply)
{
    struct worker *worker = context;
    worker->leaving = false;
    if (!session_check(worker->session, reply, "leaving")) {
        return;
    }
    struct queue_requeue_reply answer;
    if (!queue_requeue_read(reply, &answer) && answer.more) {
        leave(worker);
    } else {
        stopped(worker, EX_OK);
    }
}

/* Hands back whatever is pending for this consumer and strikes it off. */
static void leave(struct worker *worker)
{
    queue_requeue(&worker->command, &worker->queue, worker->beat.consumer, false);
    worker->leaving = !session_send(worker->session, &worker->command, on_left, worker);
    if (!worker->leaving) {
        session_recover(worker->session, REDIS_ERROR_LOST, "cannot send a command");
    }
}

static void check_stopped(struct worker *worker)
{
    if (!stop_has_begun(worker->stop) || worker->leaving || runner_count(worker->runner) > 0 ||
        results_count(worker->results) > 0 || !herald_is_quiet(worker->herald)) {
        return;
    }
    if (session_is_away(worker->session)) {
        log_text(LOG_NOTICE, "stopping without Redis: nothing is left to be told");
        stopped(worker, EX_OK);
    } else if (session_is_up(worker->session) && intake_is_quiet(worker->intake)) {
        leave(worker);
    }
}

void worker_stop(struct worker *worker)
{
    lists_close(worker->lists);
    herald_close(worker->herald);
    stop_advance(worker->stop);
}

int64_t worker_stop_ms(const struct worker *worker)
{
    return stop_left_ms(worker->stop);
}

/* ---- each turn of the loop ---- */

/* All results and the next claim of one turn go out in one write. */
static void on_turn(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    (void)loop;
    (void)events;
    struct worker *worker = watcher->data;

    /* results go out with the next claim, and that may wait for more of them; those of a batch are
     * many already */
    slots_turn(worker->slots);
    herald_turn(worker->herald);
    if (worker->renew && !intake_is_claiming(worker->intake)) {
        /* a claim's answer may bring the cancelled task itself */
        worker->renew = false;
        lease_renew(worker->lease);
    }
    if (!stop_has_begun(worker->stop) && worker->config->task.batch == 1 &&
        (intake_is_claiming(worker->intake) ||
         (slots_busy(worker->slots) && results_linger(worker->results)))) {
        return;
    }
    results_flush(worker->results);
    if (!worker->leaving) {
        intake_turn(worker->intake);
    }
    results_flush(worker->results); /* what the intake put back */
    check_stopped(worker);
}

/* ---- life ---- */

static int make_parts(struct worker *worker, const struct rlimit *nofile, int64_t watchdog_ms)
{
    struct ev_loop *loop = worker->loop;
    const struct config *config = worker->config;
    const struct session_events session_events = {.tokens = list_tokens,
                                                  .beat = make_beat,
                                                  .up = on_up,
                                                  .down = on_down,
                                                  .rang = on_rang,
                                                  .fatal = on_fatal,
                                                  .context = worker};
    const struct runner_events runner_events = {
        .ended = on_ended, .lingers = record_lingers, .context = worker};
    const struct results_events results_events = {.settled = on_settled, .context = worker};
    const struct intake_events intake_events = {
        .put_back = put_back, .lease = on_lease, .context = worker};
    const struct lease_events lease_events = {.tokens = list_tokens,
                                              .beat = make_beat,
                                              .told = on_told,
                                              .beat_done = on_beat_done,
                                              .context = worker};

    const struct stop_events stop_events = {
        .close = on_close, .end = on_end, .give_up = on_give_up, .context = worker};
    const struct slots_events slots_events = {
        .closed = is_closed, .reserve = reserve, .put_back = put_back, .context = worker};
    const struct host_events host_events = {.close = on_close, .open = on_open, .context = worker};

    worker->host = host_new(loop, &host_events);
    worker->admission = admission_new(loop, config, on_pressure, worker);
    worker->stop = stop_new(loop, config, &stop_events);
    worker->session =
        session_new(loop, config, &worker->queue, worker->beat.consumer, &session_events);
    worker->runner = runner_new(loop, config, worker->beat.consumer, nofile, &runner_events);
    if (!worker->host || !worker->admission || !worker->stop || !worker->session ||
        !worker->runner) {
        return -1;
    }
    runner_set_cgroups(worker->runner, worker->isolation->cgroups);
    worker->herald = herald_new(config, worker->session, worker->runner, &worker->queue);
    worker->live =
        live_new(loop, worker->session, worker->runner, &worker->queue, worker->beat.consumer);
    worker->results = results_new(loop, config, worker->session, worker->live, &worker->queue,
                                  worker->beat.consumer, &results_events);
    worker->lease = lease_new(loop, config, worker->session, worker->runner, &worker->queue,
                              worker->beat.consumer, watchdog_ms, &lease_events);
    worker->lists = lists_new(loop, config, worker->session, &worker->queue);
    if (!worker->herald || !worker->live || !worker->results || !worker->lease || !worker->lists) {
        return -1;
    }
    worker->slots = slots_new(loop, config, worker->runner, worker->lease, worker->host,
                              worker->session, &worker->queue, &slots_events);
    if (!worker->slots) {
        return -1;
    }
    worker->warden = warden_new(loop, config, worker->beat.consumer, worker->isolation,
                                worker->host, worker->runner);
    if (!worker->warden) {
        return -1;
    }
    worker->intake =
        intake_new(loop, config, worker->session, worker->slots, &worker->queue,
                   worker->beat.consumer, worker->herald, worker->warden, &intake_events);
    worker->standing = (struct standing){.session = worker->session,
                                         .stop = worker->stop,
                                         .host = worker->host,
                                         .admission = worker->admission,
                                         .results = worker->results,
                                         .lease = worker->lease,
                                         .intake = worker->intake};
    return worker->intake ? 0 : -1;
}

struct worker *worker_new(struct ev_loop *loop, const struct config *config,
                          const struct rlimit *nofile, const struct isolation *isolation,
                          int64_t watchdog_ms, const struct worker_events *events)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        return NULL;
    }
    worker->loop = loop;
    worker->config = config;
    worker->isolation = isolation;
    worker->events = *events;
    ev_prepare_init(&worker->turn, on_turn);
    worker->turn.data = worker;
    if (beat_init(&worker->beat) ||
        queue_init(&worker->queue, config->queue.stream, config->queue.group) ||
        make_parts(worker, nofile, watchdog_ms)) {
        worker_free(worker);
        return NULL;
    }
    ev_prepare_start(loop, &worker->turn);
    return worker;
}

void worker_start(struct worker *worker)
{
    intake_open(worker->intake);
    warden_start(worker->warden); /* closes it again where no guard can be had */
    session_start(worker->session);
}

void worker_set_config(struct worker *worker, const struct config *config)
{
    worker->config = config;
    session_set_config(worker->session, config);
    runner_set_config(worker->runner, config);
    intake_set_config(worker->intake, config);
    lease_set_config(worker->lease, config);
    lists_set_config(worker->lists, config);
    stop_set_config(worker->stop, config);
    slots_set_config(worker->slots, config);
    admission_set_config(worker->admission, config);
    herald_set_config(worker->herald, config);
    intake_ask(worker->intake);
}

struct worker_figures worker_figures(const struct worker *worker)
{
    return (struct worker_figures){.running = runner_count(worker->runner),
                                   .slots = slots_most(worker->slots),
                                   .succeeded = worker->beat.succeeded,
                                   .retried = worker->beat.retried,
                                   .dead = worker->beat.dead,
                                   .released = worker->beat.released,
                                   .cancelled = worker->beat.cancelled,
                                   .state = standing_state(&worker->standing),
                                   .trouble = standing_trouble(&worker->standing)};
}

void worker_free(struct worker *worker)
{
    if (!worker) {
        return;
    }
    ev_prepare_stop(worker->loop, &worker->turn);
    session_free(worker->session); /* first: it tells all the others that their calls have ended */
    intake_free(worker->intake);
    slots_free(worker->slots);
    herald_free(worker->herald);
    runner_free(worker->runner);
    warden_free(worker->warden);
    live_free(worker->live);
    lease_free(worker->lease);
    lists_free(worker->lists);
    results_free(worker->results);
    queue_free(&worker->queue);
    beat_free(&worker->beat);
    host_free(worker->host);
    admission_free(worker->admission);
    stop_free(worker->stop);
    command_free(&worker->command);
    free(worker);
}
