/*
 * Fetches dead letters from Redis, runs [dead] notify for each, and reports which ran.
 */
#include "daemon/report/dead_hook.h"

#include <stdio.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "base/array.h"
#include "base/log/log.h"
#include "daemon/report/task_log.h"
#include "queue/calls.h"
#include "queue/dead_letter.h"
#include "queue/replies.h"

struct dead_hook {
    struct worker_context *worker;
    struct config own; /* for the runner: a copy with the hook as the tasks' command */
    struct runner *tasks;
    struct runner *runner; /* NULL until a hook is configured */

    bool fetch;      /* there may be letters */
    bool closed;     /* the worker stops */
    bool broken;     /* this host could not run the hook: fetch nothing until dead_hook_retry */
    bool refused;    /* Redis refused the call: send nothing until dead_hook_retry */
    bool complained; /* the log says that Redis refuses */
    bool calling;    /* a call is in flight */
    char **settled;  /* "+ID" (ran) and "-ID" (did not), as queue_tell takes them; owned */
    size_t settled_count;
    size_t sent; /* how many of settled, from the first, are in the call */
};

/* ---- results ---- */

/* Without memory the letter is not settled, and Redis hands it out again later. */
static void settle(struct dead_hook *dead_hook, char sign, const char *id)
{
    char **settled = array_grow(dead_hook->settled, dead_hook->settled_count, sizeof *settled);
    if (!settled) {
        return;
    }
    dead_hook->settled = settled;
    char *what;
    if (asprintf(&what, "%c%s", sign, id) >= 0) {
        dead_hook->settled[dead_hook->settled_count++] = what;
    }
}

static void forget_settled(struct dead_hook *dead_hook, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(dead_hook->settled[i]);
    }
    dead_hook->settled_count -= count;
    for (size_t i = 0; i < dead_hook->settled_count; i++) {
        dead_hook->settled[i] = dead_hook->settled[i + count];
    }
}

/* A hook that ran, even if it failed, is not run again. One that could not be run, or was not
 * allowed to finish, is left to another worker, as a task would go back to the queue. */
static bool was_run(const struct dead_hook *dead_hook, const struct ending *ending)
{
    enum verdict verdict = outcome_decide(&dead_hook->own.retry, ending, 0).verdict;
    return verdict != VERDICT_RELEASE && verdict != VERDICT_CANCELLED;
}

static void on_ended(void *context, struct attempt *attempt)
{
    struct dead_hook *dead_hook = context;
    bool run = was_run(dead_hook, &attempt->ending);
    dead_hook->broken |= attempt->ending.cause == CAUSE_HOST;
    task_log_hook_ended(attempt, run);
    settle(dead_hook, run ? '+' : '-', attempt->task->token);
    attempt_free(attempt);
}

/* ---- letters ---- */

/* After this time Redis assumes that the worker that has the letter is dead. */
static int64_t letter_deadline_ms(const struct dead_hook *dead_hook)
{
    const struct worker_context *worker = dead_hook->worker;
    return worker->config->dead.notify_timeout_ms + worker->config->task.kill_grace_ms +
           worker->lease_ms;
}

static void start_hooks(struct dead_hook *dead_hook, struct dead_letter_reply *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct claimed_task claimed = {.task = answer->letters[i]};
        if (runner_start(dead_hook->runner, &claimed, 1)) {
            log_text(LOG_ERR, "task %s: dead-letter hook not started: out of memory; it runs later",
                     answer->letters[i]->tid);
        } else {
            answer->letters[i] = NULL;
        }
    }
}

static void on_fetched(void *context, const struct redisReply *reply)
{
    struct dead_hook *dead_hook = context;
    struct dead_letter_reply answer;
    dead_hook->calling = false;
    if (!reply) {
        return; /* the next session sends the same again */
    }
    if (dead_letter_read(reply, &answer)) {
        /* this does not reopen the session, which would disturb the tasks: if it is necessary, a
         * call for the tasks will do it */
        char why[512];
        queue_explain(reply, why, sizeof why);
        log_text(dead_hook->complained ? LOG_DEBUG : LOG_WARNING,
                 "dead-letter hook: cannot fetch dead letters: %s", why);
        dead_hook->refused = dead_hook->complained = true;
        return;
    }
    dead_hook->complained = false;
    forget_settled(dead_hook, dead_hook->sent);
    /* after large ones, Redis hands out fewer than there are */
    dead_hook->fetch |= answer.count > 0 || answer.given_up->elements > 0;
    task_log_hook_given_up(answer.given_up);
    start_hooks(dead_hook, &answer);
    dead_letter_reply_free(&answer);
}

static size_t room(const struct dead_hook *dead_hook)
{
    bool wants = dead_hook->fetch && !dead_hook->closed && !dead_hook->broken &&
                 !dead_hook->worker->moving && !dead_hook->worker->waiting && dead_hook->runner &&
                 dead_hook->worker->config->dead.notify;
    size_t most = wants ? (size_t)dead_hook->worker->config->dead.notify_jobs : 0;
    size_t running = wants ? runner_count(dead_hook->runner) : 0;
    return most > running ? most - running : 0;
}

void dead_hook_turn(struct dead_hook *dead_hook)
{
    size_t wanted = room(dead_hook);
    if ((wanted == 0 && dead_hook->settled_count == 0) || dead_hook->calling ||
        dead_hook->refused || !session_is_up(dead_hook->worker->session)) {
        return;
    }
    queue_tell(&dead_hook->worker->command, dead_hook->worker->queue, (int64_t)wanted,
               letter_deadline_ms(dead_hook), dead_hook->settled, dead_hook->settled_count);
    if (session_send(dead_hook->worker->session, on_fetched, dead_hook)) {
        return;
    }
    dead_hook->calling = true;
    dead_hook->sent = dead_hook->settled_count;
    dead_hook->fetch = dead_hook->fetch && wanted == 0;
}

void dead_hook_fetch(struct dead_hook *dead_hook)
{
    dead_hook->fetch = true;
}

void dead_hook_retry(struct dead_hook *dead_hook)
{
    dead_hook->fetch = true;
    dead_hook->broken = dead_hook->refused = false;
}

/* ---- end ---- */

void dead_hook_close(struct dead_hook *dead_hook)
{
    dead_hook->closed = true;
}

void dead_hook_end(struct dead_hook *dead_hook, enum job_event event)
{
    struct attempt *next;
    for (struct attempt *attempt = dead_hook->runner ? runner_first(dead_hook->runner) : NULL;
         attempt; attempt = next) {
        next = LIST_NEXT(attempt, link);
        runner_end(dead_hook->runner, attempt, event);
    }
}

bool dead_hook_is_quiet(const struct dead_hook *dead_hook)
{
    if (dead_hook->runner && runner_count(dead_hook->runner) > 0) {
        return false;
    }
    return !session_is_up(dead_hook->worker->session) || dead_hook->refused ||
           (!dead_hook->calling && dead_hook->settled_count == 0);
}

/* ---- creation and reload ---- */

/* The hook runs as a task's command would, with the letter's payload on stdin. */
static void make_own_config(struct dead_hook *dead_hook)
{
    const struct config *config = dead_hook->worker->config;
    dead_hook->own = *config;
    dead_hook->own.task.command = config->dead.notify;
    dead_hook->own.task.timeout_ms = config->dead.notify_timeout_ms;
    dead_hook->own.task.stdin_from = CONFIG_STDIN_PAYLOAD;
    dead_hook->own.task.batch = 1;
    dead_hook->own.task.resident = false;
    dead_hook->own.task.check = NULL;
    dead_hook->own.retry.exits = (struct config_exits){0};
}

static int make_runner(struct dead_hook *dead_hook)
{
    const struct runner_events events = {
        .ended = on_ended, .stuck = task_log_stuck, .context = dead_hook};
    if (dead_hook->runner) {
        runner_set_config(dead_hook->runner, &dead_hook->own);
    } else if (dead_hook->worker->config->dead.notify) {
        dead_hook->runner = runner_new_beside(dead_hook->tasks, &dead_hook->own, &events);
        return dead_hook->runner ? 0 : -1;
    }
    return 0;
}

struct dead_hook *dead_hook_new(struct worker_context *worker, struct runner *tasks)
{
    struct dead_hook *dead_hook = calloc(1, sizeof *dead_hook);
    if (!dead_hook) {
        return NULL;
    }
    dead_hook->worker = worker;
    dead_hook->tasks = tasks;
    make_own_config(dead_hook);
    if (make_runner(dead_hook)) {
        free(dead_hook);
        return NULL;
    }
    return dead_hook;
}

void dead_hook_reload(struct dead_hook *dead_hook)
{
    make_own_config(dead_hook);
    if (make_runner(dead_hook)) {
        log_text(LOG_ERR, "dead-letter hook: not running: out of memory");
    }
    dead_hook_retry(dead_hook);
}

void dead_hook_free(struct dead_hook *dead_hook)
{
    if (dead_hook) {
        runner_free(dead_hook->runner);
        forget_settled(dead_hook, dead_hook->settled_count);
        free(dead_hook->settled);
        free(dead_hook);
    }
}
