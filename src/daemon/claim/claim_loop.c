/*
 * The worker's loop of claims, blocking reads and scans.
 */
#include "daemon/claim/claim_loop.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "base/timer.h"
#include "config/lease_rule.h"
#include "daemon/claim/reclaim.h"
#include "daemon/report/task_log.h"
#include "queue/calls.h"
#include "queue/replies.h"

/* A blocking read that waited longer than this found the queue empty, so there is no backlog. */
#define WAITED_NS (1 * CLOCK_NS_PER_MS)

/* Only if Redis answers within this time can a read that waited be told from one that did not. */
#define NEAR_NS (WAITED_NS / 2)

#define SCAN_JITTER 0.2 /* of the scan period, so that workers do not scan at the same time */

enum claim_loop_state {
    CLAIM_IDLE,
    CLAIM_SENT,       /* a claim is in flight */
    CLAIM_BLOCKED,    /* a blocking read is in flight */
    CLAIM_UNBLOCKING, /* the blocking read was asked to end */
};

struct claim_loop {
    struct worker_context *worker;
    struct dead_hook *dead_hook;
    struct slots *slots;
    struct pause_state *pause_state;
    struct reclaim *reclaim;
    struct lease *lease;
    struct outcomes *outcomes;

    enum claim_loop_state state;
    bool scheduled; /* there may be something to claim */
    bool deferred;  /* the tokens wait until the worker is empty */
    bool backlog;   /* the last claim brought all that it asked for */
    bool scanning;  /* a scan is in flight */
    bool careful;   /* the last claim was not answered: its tasks may have been too large */
    uint64_t claim_wakeups, scan_wakeups; /* the count of wakeups when each was sent */
    char **tokens;                        /* read and not claimed; owned strings */
    size_t token_count;
    size_t wanted; /* by the claim in flight */
    int64_t fence; /* the greatest fencing token of all tasks so far */
    int64_t claim_sent_ns;
    int64_t claim_took_ns; /* until the last answer came */
    int64_t block_sent_ns;
    bool waited;                    /* the last blocking read had to wait: there is no backlog */
    char cursor[QUEUE_CURSOR_SIZE]; /* where the scan continues; "": no scan is due */
    struct timer due;               /* when the next delayed task is due */
    struct timer scan;
    int64_t scan_ms; /* its period */
};

/* ---- tokens of blocking reads ---- */

static void forget_tokens(struct claim_loop *claim_loop)
{
    for (size_t i = 0; i < claim_loop->token_count; i++) {
        free(claim_loop->tokens[i]);
    }
    claim_loop->token_count = 0;
    claim_loop->deferred = false;
}

static void add_token(void *context, const char *token)
{
    struct claim_loop *claim_loop = context;
    char **tokens = array_grow(claim_loop->tokens, claim_loop->token_count, sizeof *tokens);
    char *copy = tokens ? strdup(token) : NULL;
    claim_loop->tokens = tokens ? tokens : claim_loop->tokens;
    if (!copy) {
        /* the strict renewal of the next session returns it to the queue */
        session_recover(claim_loop->worker->session, REDIS_ERROR_LOST, "out of memory");
        return;
    }
    claim_loop->tokens[claim_loop->token_count++] = copy;
}

/* Puts back all but the first `most`. */
static void put_back_tokens(struct claim_loop *claim_loop, size_t most)
{
    for (size_t i = most; i < claim_loop->token_count; i++) {
        outcomes_put_back(claim_loop->outcomes, claim_loop->tokens[i], true);
        free(claim_loop->tokens[i]);
    }
    claim_loop->token_count = claim_loop->token_count < most ? claim_loop->token_count : most;
    claim_loop->deferred = claim_loop->deferred && claim_loop->token_count > 0;
}

void claim_loop_forget(struct claim_loop *claim_loop, const struct token_set *lost)
{
    size_t kept = 0;
    for (size_t i = 0; i < claim_loop->token_count; i++) {
        if (token_set_has(lost, claim_loop->tokens[i])) {
            free(claim_loop->tokens[i]);
        } else {
            claim_loop->tokens[kept++] = claim_loop->tokens[i];
        }
    }
    if (kept < claim_loop->token_count) {
        claim_loop->token_count = kept;
        claim_loop->deferred = claim_loop->deferred && kept > 0;
        claim_loop->scheduled = true;
    }
}

void claim_loop_tokens(const struct claim_loop *claim_loop, struct token_list *list)
{
    for (size_t i = 0; i < claim_loop->token_count; i++) {
        token_list_add(list, claim_loop->tokens[i]);
    }
}

/* ---- claiming ---- */

/* Handles the rest of a claim's reply. Only differences of Redis's clock are used. */
static void handle_reply(struct claim_loop *claim_loop, const struct queue_claim_reply *answer,
                         uint64_t sent_wakeups)
{
    if (lease_update(claim_loop->lease, answer->lease_ms)) {
        lease_renew(claim_loop->lease); /* running tasks have deadlines of the former lease */
    }
    if (answer->ended->elements > 0) {
        task_log_ended_by_call(claim_loop->worker->refusals, answer->ended, answer->reasons);
        dead_hook_fetch(claim_loop->dead_hook);
    }
    if (!pause_state_update(claim_loop->pause_state, answer, sent_wakeups)) {
        claim_loop->scheduled = true;
    } else if (pause_state_is_paused(claim_loop->pause_state)) {
        slots_put_back_waiting(claim_loop->slots); /* tasks claimed ahead must not start */
    }
    if (answer->next_due_ms) {
        /* one more, since Redis's clock counts whole milliseconds */
        timer_start_ms(&claim_loop->due, answer->next_due_ms - answer->now_ms + 1);
    } else {
        timer_stop(&claim_loop->due);
    }
}

static void on_claimed(void *context, const struct redisReply *reply)
{
    struct claim_loop *claim_loop = context;
    struct queue_claim_reply answer;
    int malformed = queue_claim_read(reply, &answer);
    if (!session_check(claim_loop->worker->session, reply, malformed, "claim")) {
        return;
    }
    claim_loop->state = CLAIM_IDLE;
    claim_loop->careful = false;
    claim_loop->claim_took_ns = clock_boot_ns() - claim_loop->claim_sent_ns;
    handle_reply(claim_loop, &answer, claim_loop->claim_wakeups);
    /* if the read waited for the only task that was claimed, the next read will wait, too; a
     * request that came since the claim was sent stays */
    claim_loop->backlog = claim_loop->wanted > 0 && answer.task_count >= claim_loop->wanted;
    claim_loop->scheduled |= claim_loop->wanted > 0 ? claim_loop->backlog : !claim_loop->waited;
    size_t bytes = 0;
    for (size_t i = 0; i < answer.task_count; i++) {
        struct task *task = answer.tasks[i];
        answer.tasks[i] = NULL;
        bytes += task_bytes(task);
        claim_loop->fence = task->fence > claim_loop->fence ? task->fence : claim_loop->fence;
        slots_take(claim_loop->slots, task, claim_loop->claim_sent_ns);
    }
    /* when a slot is free again, others may wait: a blocking read would take one of the stream,
     * whose turn it need not be */
    claim_loop->scheduled |= slots_room(claim_loop->slots) == 0;
    /* the claim stopped early: others may be there, and a blocking read would transfer one twice */
    claim_loop->scheduled |= bytes >= QUEUE_MOVE_BYTES;
    for (size_t i = 0; answer.unread && i < answer.unread->elements; i++) {
        add_token(claim_loop, answer.unread->element[i]->str);
    }
    for (size_t i = 0; i < answer.deferred_count; i++) {
        add_token(claim_loop, answer.deferred[i]);
        if (!claim_loop->deferred) {
            log_text(LOG_INFO, "poison candidate: claiming nothing else until running tasks have "
                               "ended, to run it alone");
        }
        claim_loop->deferred = true;
    }
    queue_claim_reply_free(&answer);
}

static void claim(struct claim_loop *claim_loop, size_t wanted)
{
    size_t most = claim_loop->careful ? 1 : QUEUE_NAMED_MAX;
    wanted = wanted < most ? wanted : most;
    size_t taken = slots_taken(claim_loop->slots);
    queue_claim(&claim_loop->worker->command, claim_loop->worker->queue,
                claim_loop->worker->consumer, (int64_t)wanted, (int64_t)taken, "",
                (const char *const *)claim_loop->tokens, claim_loop->token_count);
    claim_loop->scheduled = false;
    claim_loop->wanted = wanted;
    claim_loop->claim_wakeups = pause_state_wakeups(claim_loop->pause_state);
    claim_loop->claim_sent_ns = clock_boot_ns();
    if (session_send(claim_loop->worker->session, on_claimed, claim_loop)) {
        return;
    }
    /* tokens that the reply does not name are no longer this worker's */
    forget_tokens(claim_loop);
    claim_loop->state = CLAIM_SENT;
}

int64_t claim_loop_fence(const struct claim_loop *claim_loop)
{
    return claim_loop->fence;
}

/* ---- blocking ---- */

static void on_blocked(void *context, const struct redisReply *reply)
{
    struct claim_loop *claim_loop = context;
    bool malformed = queue_block_read(claim_loop->worker->queue, reply, add_token, claim_loop) < 0;
    if (session_check(claim_loop->worker->session, reply, malformed, "waiting for tasks")) {
        claim_loop->state = CLAIM_IDLE;
        claim_loop->waited = clock_boot_ns() - claim_loop->block_sent_ns > WAITED_NS;
    }
}

/* A read that finds entries at once brings one from each of the two streams: they can be of any
 * size, and the claim brings more. */
static void block(struct claim_loop *claim_loop)
{
    queue_block(&claim_loop->worker->command, claim_loop->worker->queue,
                claim_loop->worker->consumer, 1, session_block_ms(claim_loop->worker->session));
    if (session_block(claim_loop->worker->session, on_blocked, claim_loop) == 0) {
        claim_loop->block_sent_ns = clock_boot_ns();
        claim_loop->state = CLAIM_BLOCKED;
    }
}

/* ---- the scan: a claim of no tasks, which hands out expired leases and checks for a pause; it
 * needs no room and does not disturb a blocking read ---- */

static void on_scanned(void *context, const struct redisReply *reply)
{
    struct claim_loop *claim_loop = context;
    claim_loop->scanning = false;
    struct queue_claim_reply answer;
    int malformed = queue_claim_read(reply, &answer);
    if (!session_check(claim_loop->worker->session, reply, malformed, "scan")) {
        return;
    }
    memcpy(claim_loop->cursor, answer.cursor, sizeof claim_loop->cursor);
    handle_reply(claim_loop, &answer, claim_loop->scan_wakeups);
    queue_claim_reply_free(&answer);
}

static void scan(struct claim_loop *claim_loop)
{
    size_t taken = slots_taken(claim_loop->slots);
    queue_claim(&claim_loop->worker->command, claim_loop->worker->queue,
                claim_loop->worker->consumer, 0, (int64_t)taken, claim_loop->cursor, NULL, 0);
    if (session_send(claim_loop->worker->session, on_scanned, claim_loop)) {
        return;
    }
    claim_loop->scanning = true;
    claim_loop->scan_wakeups = pause_state_wakeups(claim_loop->pause_state);
    pause_state_checked(claim_loop->pause_state);
}

static int64_t scan_period_ms(const struct claim_loop *claim_loop)
{
    const struct worker_context *worker = claim_loop->worker;
    return lease_rule_scan_ms(worker->config->queue.scan_ms, worker->lease_ms);
}

static void set_scan_timer(struct claim_loop *claim_loop)
{
    claim_loop->scan_ms = scan_period_ms(claim_loop);
    double period = (double)claim_loop->scan_ms / 1000;
    timer_start_s(&claim_loop->scan, period * (1 - SCAN_JITTER * drand48()));
}

/* ---- decisions ---- */

/* If the read had to wait, there is most likely no other task: then the short claim of just the
 * named one, and the next read finds what else has come. That costs the others two round trips, so
 * Redis has to be near; and a batch must not begin without them. */
static bool wants_only_named(const struct claim_loop *claim_loop)
{
    bool may_be_alone = claim_loop->waited && !claim_loop->scheduled &&
                        claim_loop->claim_took_ns < NEAR_NS &&
                        claim_loop->worker->config->task.batch == 1;
    return claim_loop->deferred || may_be_alone;
}

static void turn_idle(struct claim_loop *claim_loop, bool may_claim)
{
    if (!may_claim) {
        put_back_tokens(claim_loop, 0);
        return;
    }
    if (claim_loop->deferred && slots_taken(claim_loop->slots) > 0) {
        return;
    }
    size_t room = slots_room(claim_loop->slots);
    /* tasks are claimed ahead of free slots only from a backlog */
    size_t ahead = claim_loop->backlog ? slots_ahead(claim_loop->slots) : 0;
    put_back_tokens(claim_loop, room); /* a read may bring too many, or room has shrunk */
    if (claim_loop->token_count > 0) {
        claim(claim_loop, wants_only_named(claim_loop) ? 0 : room - claim_loop->token_count);
    } else if (room + ahead > 0 && claim_loop->scheduled) {
        claim(claim_loop, room + ahead);
    } else if (room > 0) {
        block(claim_loop);
    }
}

void claim_loop_turn(struct claim_loop *claim_loop)
{
    if (!session_is_up(claim_loop->worker->session)) {
        return;
    }
    if (timer_runs(&claim_loop->scan) && claim_loop->scan_ms != scan_period_ms(claim_loop)) {
        set_scan_timer(claim_loop); /* the old period may end hours from now */
    }
    if ((*claim_loop->cursor || pause_state_wants_check(claim_loop->pause_state)) &&
        !claim_loop->scanning) {
        scan(claim_loop);
    }
    bool may_claim = claim_loop->worker->may_claim && pause_state_is_open(claim_loop->pause_state);
    switch (claim_loop->state) {
    case CLAIM_IDLE:
        turn_idle(claim_loop, may_claim);
        return;
    case CLAIM_BLOCKED:
        if (claim_loop->scheduled || !may_claim) {
            claim_loop->state = CLAIM_UNBLOCKING;
            session_unblock(claim_loop->worker->session);
        }
        return;
    case CLAIM_SENT:
    case CLAIM_UNBLOCKING:
        return;
    }
}

void claim_loop_schedule(struct claim_loop *claim_loop)
{
    claim_loop->scheduled = true;
}

void claim_loop_wakeup(struct claim_loop *claim_loop, const struct queue_wakeup *wakeup)
{
    claim_loop->scheduled = claim_loop->scheduled || wakeup->startable;
    if (wakeup->settings) {
        pause_state_wakeup(claim_loop->pause_state, wakeup->pause);
    }
}

static void on_due(void *context)
{
    claim_loop_schedule(context);
}

static void on_reopened(void *context)
{
    claim_loop_schedule(context);
}

static void on_scan(void *context)
{
    struct claim_loop *claim_loop = context;
    if (!*claim_loop->cursor) {
        memcpy(claim_loop->cursor, QUEUE_SCAN_START, sizeof QUEUE_SCAN_START);
    }
    set_scan_timer(claim_loop);
    dead_hook_retry(claim_loop->dead_hook);
    reclaim_look(claim_loop->reclaim);
}

/* ---- session, creation, reload ---- */

void claim_loop_up(struct claim_loop *claim_loop)
{
    claim_loop->scheduled = true;
    pause_state_up(claim_loop->pause_state);
    memcpy(claim_loop->cursor, QUEUE_SCAN_START, sizeof QUEUE_SCAN_START);
    set_scan_timer(claim_loop);
    reclaim_look(claim_loop->reclaim);
}

void claim_loop_down(struct claim_loop *claim_loop)
{
    timer_stop(&claim_loop->due);
    pause_state_down(claim_loop->pause_state);
    reclaim_down(claim_loop->reclaim);
    timer_stop(&claim_loop->scan);
    forget_tokens(claim_loop);
    claim_loop->careful |= claim_loop->state == CLAIM_SENT;
    claim_loop->state = CLAIM_IDLE;
    claim_loop->scanning = false;
    claim_loop->cursor[0] = '\0';
}

bool claim_loop_is_quiet(const struct claim_loop *claim_loop)
{
    return claim_loop->state == CLAIM_IDLE && claim_loop->token_count == 0;
}

bool claim_loop_is_claiming(const struct claim_loop *claim_loop)
{
    return claim_loop->state == CLAIM_SENT;
}

bool claim_loop_is_waiting(const struct claim_loop *claim_loop)
{
    return claim_loop->state == CLAIM_BLOCKED;
}

enum pause_kind claim_loop_pause(const struct claim_loop *claim_loop)
{
    return pause_state_kind(claim_loop->pause_state);
}

struct claim_loop *claim_loop_new(struct worker_context *worker, struct slots *slots,
                                  struct lease *lease, struct outcomes *outcomes,
                                  struct dead_hook *dead_hook, struct guard_monitor *guard_monitor)
{
    struct claim_loop *claim_loop = calloc(1, sizeof *claim_loop);
    if (!claim_loop) {
        return NULL;
    }
    claim_loop->worker = worker;
    claim_loop->dead_hook = dead_hook;
    claim_loop->slots = slots;
    claim_loop->lease = lease;
    claim_loop->outcomes = outcomes;
    timer_init(&claim_loop->due, worker->loop, on_due, claim_loop);
    timer_init(&claim_loop->scan, worker->loop, on_scan, claim_loop);
    claim_loop->pause_state = pause_state_new(worker, on_reopened, claim_loop);
    claim_loop->reclaim = reclaim_new(worker, dead_hook, guard_monitor);
    if (!claim_loop->pause_state || !claim_loop->reclaim) {
        pause_state_free(claim_loop->pause_state);
        reclaim_free(claim_loop->reclaim);
        free(claim_loop);
        return NULL;
    }
    return claim_loop;
}

void claim_loop_free(struct claim_loop *claim_loop)
{
    if (claim_loop) {
        claim_loop_down(claim_loop);
        pause_state_free(claim_loop->pause_state);
        reclaim_free(claim_loop->reclaim);
        free(claim_loop->tokens);
        free(claim_loop);
    }
}
