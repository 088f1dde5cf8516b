#include "daemon/intake.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "daemon/adopt.h"
#include "daemon/record.h"

/* A blocking read that waited longer found the queue empty: more of the same is to be expected. */
#define WAITED_NS (1 * CLOCK_NS_PER_MS)

#define SCAN_JITTER 0.2 /* of the scan period, so that workers do not scan in step */

enum intake_state {
    INTAKE_IDLE,
    INTAKE_CLAIMING,   /* a claim is under way */
    INTAKE_BLOCKED,    /* a blocking read is under way */
    INTAKE_UNBLOCKING, /* it was asked to end */
};

struct intake {
    struct ev_loop *loop;
    const struct config *config;
    struct session *session;
    struct herald *herald;
    struct slots *slots;
    struct gate *gate;
    struct adopt *adopt;
    const struct queue *queue;
    const char *consumer;
    struct intake_events events;

    enum intake_state state;
    bool open;                        /* the worker wants tasks */
    bool ask;                         /* there may be something to claim */
    bool held;                        /* the named tokens wait until nothing runs */
    bool backlog;                     /* the last claim brought all that it asked for */
    bool scanning;                    /* a scan's reply is awaited */
    uint64_t claim_rings, scan_rings; /* of the bell, when each was sent */
    char **named;                     /* owned strings */
    size_t named_count, named_capacity;
    size_t wanted; /* of the claim under way */
    int64_t claim_sent_ns;
    int64_t block_sent_ns;
    bool waited;                    /* the last blocking read had to wait: there is no backlog */
    char cursor[QUEUE_CURSOR_SIZE]; /* the scan goes on here; "": none is due */
    struct command command;
    ev_timer due; /* the next delayed task */
    ev_timer scan;
};

/* ---- names ---- */

static void forget_named(struct intake *intake)
{
    for (size_t i = 0; i < intake->named_count; i++) {
        free(intake->named[i]);
    }
    intake->named_count = 0;
    intake->held = false;
}

static void add_named(void *context, const char *token)
{
    struct intake *intake = context;
    if (intake->named_count == intake->named_capacity) {
        size_t capacity = intake->named_capacity ? intake->named_capacity * 2 : 16;
        char **grown = reallocarray(intake->named, capacity, sizeof *grown);
        if (!grown) {
            session_recover(intake->session, REDIS_ERROR_LOST, "out of memory");
            return;
        }
        intake->named = grown;
        intake->named_capacity = capacity;
    }
    char *copy = strdup(token);
    if (!copy) {
        /* the strict renewal of the next session hands it back */
        session_recover(intake->session, REDIS_ERROR_LOST, "out of memory");
        return;
    }
    intake->named[intake->named_count++] = copy;
}

/* All but the first `most`. */
static void put_back_named(struct intake *intake, size_t most)
{
    for (size_t i = most; i < intake->named_count; i++) {
        intake->events.put_back(intake->events.context, intake->named[i]);
        free(intake->named[i]);
    }
    intake->named_count = intake->named_count < most ? intake->named_count : most;
    intake->held = intake->held && intake->named_count > 0;
}

void intake_forget(struct intake *intake, const struct token_set *lost)
{
    size_t kept = 0;
    for (size_t i = 0; i < intake->named_count; i++) {
        if (token_set_has(lost, intake->named[i])) {
            free(intake->named[i]);
        } else {
            intake->named[kept++] = intake->named[i];
        }
    }
    if (kept < intake->named_count) {
        intake->named_count = kept;
        intake->held = intake->held && kept > 0;
        intake->ask = true;
    }
}

void intake_tokens(const struct intake *intake, struct token_list *list)
{
    for (size_t i = 0; i < intake->named_count; i++) {
        token_list_add(list, intake->named[i]);
    }
}

/* ---- claiming ---- */

static void set_timer_ms(struct intake *intake, ev_timer *timer, int64_t ms)
{
    ev_timer_stop(intake->loop, timer);
    ev_now_update(intake->loop);
    ev_timer_set(timer, (double)(ms > 0 ? ms : 0) / 1000, 0.);
    ev_timer_start(intake->loop, timer);
}

/* What every claim tells beside its tasks. Redis' clock gives only differences. */
static void note_rest(struct intake *intake, const struct queue_claim_reply *answer,
                      uint64_t sent_rings)
{
    intake->events.lease(intake->events.context, answer->lease_ms);
    if (answer->buried->elements > 0) {
        record_buried(answer->buried);
        herald_ask(intake->herald);
    }
    if (!gate_take(intake->gate, answer, sent_rings)) {
        intake->ask = true;
    } else if (gate_is_shut(intake->gate)) {
        slots_shut(intake->slots); /* what was claimed ahead must not start any more */
    }
    if (answer->next_due_ms) {
        /* one more, since Redis' clock counts whole milliseconds */
        set_timer_ms(intake, &intake->due, answer->next_due_ms - answer->now_ms + 1);
    } else {
        ev_timer_stop(intake->loop, &intake->due);
    }
}

static void on_claimed(void *context, const struct redisReply *reply)
{
    struct intake *intake = context;
    if (!session_check(intake->session, reply, "claim")) {
        return;
    }
    struct queue_claim_reply answer;
    if (queue_claim_read(reply, &answer)) {
        session_recover(intake->session, REDIS_ERROR_OTHER, "claim: an answer in an unknown form");
        return;
    }
    intake->state = INTAKE_IDLE;
    note_rest(intake, &answer, intake->claim_rings);
    /* where a read had to wait for what filled the last slot, the next one will wait, too; what was
     * asked since the claim went out stays asked */
    intake->backlog = intake->wanted > 0 && answer.task_count >= intake->wanted;
    intake->ask |= intake->wanted > 0 ? intake->backlog : !intake->waited;
    for (size_t i = 0; i < answer.task_count; i++) {
        struct task *task = answer.tasks[i];
        answer.tasks[i] = NULL;
        slots_take(intake->slots, task, intake->claim_sent_ns);
    }
    for (size_t i = 0; i < answer.held_count; i++) {
        add_named(intake, answer.held[i]);
        if (!intake->held) {
            log_text(LOG_INFO, "a task that was lost with its worker is to run alone: nothing more "
                               "is taken until what runs has ended");
        }
        intake->held = true;
    }
    queue_claim_reply_free(&answer);
}

static void claim(struct intake *intake, size_t wanted)
{
    wanted = wanted < QUEUE_NAMED_MAX ? wanted : QUEUE_NAMED_MAX;
    size_t taken = slots_taken(intake->slots);
    queue_claim(&intake->command, intake->queue, intake->consumer, (int64_t)wanted, (int64_t)taken,
                "", (const char *const *)intake->named, intake->named_count);
    intake->ask = false;
    intake->wanted = wanted;
    intake->claim_rings = gate_rings(intake->gate);
    intake->claim_sent_ns = clock_boot_ns();
    if (session_send(intake->session, &intake->command, on_claimed, intake)) {
        session_recover(intake->session, REDIS_ERROR_LOST, "cannot send a command");
        return;
    }
    /* what the reply does not name again is not this worker's */
    forget_named(intake);
    intake->state = INTAKE_CLAIMING;
}

/* ---- blocking ---- */

static void on_blocked(void *context, const struct redisReply *reply)
{
    struct intake *intake = context;
    if (!session_check(intake->session, reply, "waiting for tasks")) {
        return;
    }
    intake->state = INTAKE_IDLE;
    intake->waited = clock_boot_ns() - intake->block_sent_ns > WAITED_NS;
    int brought = queue_block_read(intake->queue, reply, add_named, intake);
    if (brought < 0) {
        session_recover(intake->session, REDIS_ERROR_OTHER, "an answer in an unknown form");
    }
}

/* A read that need not wait brings so many from each of the two streams. */
static void block(struct intake *intake, size_t count)
{
    count = count < QUEUE_NAMED_MAX / 2 ? count : QUEUE_NAMED_MAX / 2;
    queue_block(&intake->command, intake->queue, intake->consumer, (int64_t)count);
    if (session_block(intake->session, &intake->command, on_blocked, intake)) {
        session_recover(intake->session, REDIS_ERROR_LOST, "cannot send a command");
        return;
    }
    intake->block_sent_ns = clock_boot_ns();
    intake->state = INTAKE_BLOCKED;
}

/* ---- the scan for expired leases, and a look at the gate: a claim of nothing, which needs no room
 * and disturbs no block ---- */

static void on_scanned(void *context, const struct redisReply *reply)
{
    struct intake *intake = context;
    intake->scanning = false;
    if (!session_check(intake->session, reply, "scan")) {
        return;
    }
    struct queue_claim_reply answer;
    if (queue_claim_read(reply, &answer)) {
        session_recover(intake->session, REDIS_ERROR_OTHER, "scan: an answer in an unknown form");
        return;
    }
    memcpy(intake->cursor, answer.cursor, sizeof intake->cursor);
    note_rest(intake, &answer, intake->scan_rings);
    queue_claim_reply_free(&answer);
}

static void scan(struct intake *intake)
{
    size_t taken = slots_taken(intake->slots);
    queue_claim(&intake->command, intake->queue, intake->consumer, 0, (int64_t)taken,
                intake->cursor, NULL, 0);
    if (session_send(intake->session, &intake->command, on_scanned, intake)) {
        session_recover(intake->session, REDIS_ERROR_LOST, "cannot send a command");
        return;
    }
    intake->scanning = true;
    intake->scan_rings = gate_rings(intake->gate);
    gate_looking(intake->gate);
}

static void set_scan_timer(struct intake *intake)
{
    double period = (double)intake->config->queue.scan_ms / 1000;
    ev_timer_stop(intake->loop, &intake->scan);
    ev_timer_set(&intake->scan, period * (1 - SCAN_JITTER * drand48()), 0.);
    ev_timer_start(intake->loop, &intake->scan);
}

/* ---- deciding ---- */

static void turn_idle(struct intake *intake)
{
    if (!intake->open || !gate_is_open(intake->gate)) {
        put_back_named(intake, 0);
        return;
    }
    if (intake->held && slots_taken(intake->slots) > 0) {
        return;
    }
    size_t room = slots_room(intake->slots);
    /* ahead of free slots only out of a backlog: the last claim brought all that it asked for */
    size_t ahead = intake->backlog ? slots_ahead(intake->slots) : 0;
    put_back_named(intake, room); /* a read may bring more, or there is less room by now */
    if (intake->named_count > 0) {
        claim(intake, intake->held ? 0 : room - intake->named_count);
    } else if (room + ahead > 0 && intake->ask) {
        claim(intake, room + ahead);
    } else if (room > 0) {
        block(intake, room);
    }
}

void intake_turn(struct intake *intake)
{
    if (!session_is_up(intake->session)) {
        return;
    }
    if ((*intake->cursor || gate_wants_look(intake->gate)) && !intake->scanning) {
        scan(intake);
    }
    switch (intake->state) {
    case INTAKE_IDLE:
        turn_idle(intake);
        return;
    case INTAKE_BLOCKED:
        if (intake->ask || !intake->open || !gate_is_open(intake->gate)) {
            intake->state = INTAKE_UNBLOCKING;
            session_unblock(intake->session);
        }
        return;
    case INTAKE_CLAIMING:
    case INTAKE_UNBLOCKING:
        return;
    }
}

void intake_ask(struct intake *intake)
{
    intake->ask = true;
}

void intake_rang(struct intake *intake, const struct queue_rung *rung)
{
    intake->ask = intake->ask || rung->startable;
    if (rung->settings) {
        gate_rang(intake->gate, rung->gate);
    }
}

static void on_due(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    intake_ask(watcher->data);
}

static void on_reopened(void *context)
{
    intake_ask(context);
}

static void on_scan(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct intake *intake = watcher->data;
    if (!*intake->cursor) {
        memcpy(intake->cursor, QUEUE_SCAN_START, sizeof QUEUE_SCAN_START);
    }
    set_scan_timer(intake);
    herald_look(intake->herald);
    adopt_look(intake->adopt);
}

/* ---- life ---- */

void intake_up(struct intake *intake)
{
    intake->ask = true;
    gate_up(intake->gate);
    memcpy(intake->cursor, QUEUE_SCAN_START, sizeof QUEUE_SCAN_START);
    set_scan_timer(intake);
    adopt_look(intake->adopt);
}

void intake_down(struct intake *intake)
{
    ev_timer_stop(intake->loop, &intake->due);
    gate_down(intake->gate);
    adopt_down(intake->adopt);
    ev_timer_stop(intake->loop, &intake->scan);
    forget_named(intake);
    intake->state = INTAKE_IDLE;
    intake->scanning = false;
    intake->cursor[0] = '\0';
}

void intake_close(struct intake *intake)
{
    intake->open = false;
}

void intake_open(struct intake *intake)
{
    intake->open = true;
    intake->ask = true;
}

bool intake_is_quiet(const struct intake *intake)
{
    return intake->state == INTAKE_IDLE && intake->named_count == 0;
}

bool intake_is_claiming(const struct intake *intake)
{
    return intake->state == INTAKE_CLAIMING;
}

enum gate_state intake_gate(const struct intake *intake)
{
    return gate_told(intake->gate);
}

struct intake *intake_new(struct ev_loop *loop, const struct config *config,
                          struct session *session, struct slots *slots, const struct queue *queue,
                          const char *consumer, struct herald *herald, const struct warden *warden,
                          const struct intake_events *events)
{
    struct intake *intake = calloc(1, sizeof *intake);
    if (!intake) {
        return NULL;
    }
    intake->loop = loop;
    intake->herald = herald;
    intake->config = config;
    intake->session = session;
    intake->slots = slots;
    intake->queue = queue;
    intake->consumer = consumer;
    intake->events = *events;
    ev_timer_init(&intake->due, on_due, 0., 0.);
    ev_timer_init(&intake->scan, on_scan, 0., 0.);
    intake->due.data = intake->scan.data = intake;
    intake->gate = gate_new(loop, on_reopened, intake);
    intake->adopt = adopt_new(loop, config, session, queue, consumer, herald, warden);
    if (!intake->gate || !intake->adopt) {
        gate_free(intake->gate);
        adopt_free(intake->adopt);
        free(intake);
        return NULL;
    }
    return intake;
}

void intake_set_config(struct intake *intake, const struct config *config)
{
    bool other = config->queue.scan_ms != intake->config->queue.scan_ms;
    intake->config = config;
    if (other && ev_is_active(&intake->scan)) {
        set_scan_timer(intake); /* the former may be hours away */
    }
    adopt_set_config(intake->adopt, config);
}

void intake_free(struct intake *intake)
{
    if (intake) {
        intake_down(intake);
        gate_free(intake->gate);
        adopt_free(intake->adopt);
        free(intake->named);
        command_free(&intake->command);
        free(intake);
    }
}
