#include "daemon/intake.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_ids.h"
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
    const struct queue *queue;
    const char *consumer;
    struct intake_events events;

    enum intake_state state;
    bool open;             /* the worker wants tasks */
    bool ask;              /* there may be something to claim */
    bool held;             /* the named tokens wait until nothing runs */
    bool gate;             /* Redis' gate is open as far as known */
    enum intake_gate told; /* what the last claim said of it */
    bool backlog;          /* the last claim brought all that it asked for */
    bool scanning;         /* a scan's reply is awaited */
    char **named;          /* owned strings */
    size_t named_count, named_capacity;
    size_t wanted; /* of the claim under way */
    int64_t claim_sent_ns;
    int64_t block_sent_ns;
    bool waited;                    /* the last blocking read had to wait: there is no backlog */
    char cursor[QUEUE_CURSOR_SIZE]; /* the scan goes on here; "": none is due */
    struct command command;
    ev_timer due;    /* the next delayed task */
    ev_timer reopen; /* the gate's own time */
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

static enum intake_gate gate_of(const char *why)
{
    static const char *const names[] = {
        [INTAKE_OPEN] = "",           [INTAKE_HOLD] = "hold", [INTAKE_PAUSED] = "paused",
        [INTAKE_DRAINED] = "drained", [INTAKE_RATE] = "rate",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(why, names[i]) == 0) {
            return (enum intake_gate)i;
        }
    }
    return INTAKE_RATE; /* a newer library's own reason: it says until when */
}

/* Rates close and open the gate all the time; the rest is worth a line. */
static void tell_gate(enum intake_gate before, enum intake_gate gate, int64_t closed_ms)
{
    if (gate == INTAKE_HOLD) {
        log_event(LOG_WARNING, LOG_ID_GROUP_RECREATED, NULL, 0,
                  "the queue's group was lost and made anew: its tasks may still run elsewhere, "
                  "and none is started for %.1f s",
                  (double)closed_ms / 1000);
    } else if (gate == INTAKE_PAUSED) {
        log_text(LOG_NOTICE, "the queue is paused: nothing more is started");
    } else if (gate == INTAKE_DRAINED) {
        log_text(LOG_NOTICE, "this host is drained: nothing more is started here");
    } else if (before == INTAKE_PAUSED || before == INTAKE_DRAINED) {
        log_text(LOG_NOTICE, "tasks are started again");
    }
}

/* Redis may close the gate: for one lease when the group had to be made anew, until a rate lets the
 * next task start, or until an operator opens it. */
static void note_gate(struct intake *intake, const struct queue_claim_reply *answer)
{
    enum intake_gate before = intake->told;
    int64_t closed_ms = answer->closed_until_ms - answer->now_ms;
    intake->gate = answer->closed_until_ms == 0;
    intake->told = intake->gate ? INTAKE_OPEN : gate_of(answer->why);
    if (!intake->gate) {
        set_timer_ms(intake, &intake->reopen, closed_ms);
    }
    if (intake->told != before) {
        tell_gate(before, intake->told, closed_ms);
    }
}

/* What every claim tells beside its tasks. Redis' clock gives only differences. */
static void note_rest(struct intake *intake, const struct queue_claim_reply *answer)
{
    intake->events.lease(intake->events.context, answer->lease_ms);
    if (answer->buried->elements > 0) {
        record_buried(answer->buried);
        herald_ask(intake->herald);
    }
    note_gate(intake, answer);
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
    note_rest(intake, &answer);
    /* where a read had to wait for what filled the last slot, the next one will wait, too; what was
     * asked since the claim went out stays asked */
    intake->backlog = intake->wanted > 0 && answer.task_count >= intake->wanted;
    intake->ask |= intake->wanted > 0 ? intake->backlog : !intake->waited;
    for (size_t i = 0; i < answer.task_count; i++) {
        struct task *task = answer.tasks[i];
        answer.tasks[i] = NULL;
        intake->events.task(intake->events.context, task, intake->claim_sent_ns);
    }
    for (size_t i = 0; i < answer.held_count; i++) {
        add_named(intake, answer.held[i]);
        intake->held = true;
    }
    queue_claim_reply_free(&answer);
}

static void claim(struct intake *intake, size_t wanted)
{
    wanted = wanted < QUEUE_NAMED_MAX ? wanted : QUEUE_NAMED_MAX;
    size_t taken = intake->events.taken(intake->events.context);
    queue_claim(&intake->command, intake->queue, intake->consumer, (int64_t)wanted, (int64_t)taken,
                "", (const char *const *)intake->named, intake->named_count);
    intake->ask = false;
    intake->wanted = wanted;
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

/* ---- the scan for expired leases: a claim of nothing, which needs no room and disturbs no block
 * ---- */

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
    note_rest(intake, &answer);
    queue_claim_reply_free(&answer);
}

static void scan(struct intake *intake)
{
    queue_claim(&intake->command, intake->queue, intake->consumer, 0, 0, intake->cursor, NULL, 0);
    if (session_send(intake->session, &intake->command, on_scanned, intake)) {
        session_recover(intake->session, REDIS_ERROR_LOST, "cannot send a command");
        return;
    }
    intake->scanning = true;
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
    if (!intake->open || !intake->gate) {
        put_back_named(intake, 0);
        return;
    }
    if (intake->held && intake->events.taken(intake->events.context) > 0) {
        return;
    }
    size_t room = intake->events.room(intake->events.context);
    /* ahead of free slots only out of a backlog: the last claim brought all that it asked for */
    size_t ahead = intake->backlog ? intake->events.ahead(intake->events.context) : 0;
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
    if (*intake->cursor && !intake->scanning) {
        scan(intake);
    }
    switch (intake->state) {
    case INTAKE_IDLE:
        turn_idle(intake);
        return;
    case INTAKE_BLOCKED:
        if (intake->ask || !intake->open || !intake->gate) {
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

void intake_rang(struct intake *intake)
{
    intake->ask = true;
    intake->gate = true; /* if it is not, the claim says so */
}

static void on_due(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    intake_ask(watcher->data);
}

static void on_reopen(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct intake *intake = watcher->data;
    intake->gate = true;
    intake->ask = true;
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
}

/* ---- life ---- */

void intake_up(struct intake *intake)
{
    intake->ask = true;
    intake->gate = true;
    memcpy(intake->cursor, QUEUE_SCAN_START, sizeof QUEUE_SCAN_START);
    set_scan_timer(intake);
}

void intake_down(struct intake *intake)
{
    ev_timer_stop(intake->loop, &intake->due);
    ev_timer_stop(intake->loop, &intake->reopen);
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

enum intake_gate intake_gate(const struct intake *intake)
{
    return intake->told;
}

struct intake *intake_new(struct ev_loop *loop, const struct config *config,
                          struct session *session, const struct queue *queue, const char *consumer,
                          struct herald *herald, const struct intake_events *events)
{
    struct intake *intake = calloc(1, sizeof *intake);
    if (!intake) {
        return NULL;
    }
    intake->loop = loop;
    intake->herald = herald;
    intake->config = config;
    intake->session = session;
    intake->queue = queue;
    intake->consumer = consumer;
    intake->events = *events;
    intake->gate = true;
    ev_timer_init(&intake->due, on_due, 0., 0.);
    ev_timer_init(&intake->reopen, on_reopen, 0., 0.);
    ev_timer_init(&intake->scan, on_scan, 0., 0.);
    intake->due.data = intake->reopen.data = intake->scan.data = intake;
    return intake;
}

void intake_set_config(struct intake *intake, const struct config *config)
{
    intake->config = config;
}

void intake_free(struct intake *intake)
{
    if (intake) {
        intake_down(intake);
        free(intake->named);
        command_free(&intake->command);
        free(intake);
    }
}
