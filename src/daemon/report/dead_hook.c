#include "daemon/report/dead_hook.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "daemon/report/task_log.h"
#include "queue/dead_letter.h"

struct dead_hook {
    const struct config *config;
    struct config own; /* what its runner goes by: a copy, with the program as the tasks' command */
    struct session *session;
    const struct queue *queue;
    struct runner *tasks;
    struct runner *runner; /* NULL as long as there was no program */

    bool ask;        /* there may be letters */
    bool closed;     /* the worker stops */
    bool broken;     /* this host could not run the program: no letters until the next look */
    bool refused;    /* Redis would not answer: nothing is sent until the next look */
    bool complained; /* its refusals are in the log */
    bool calling;    /* an answer is awaited */
    size_t wanted;   /* letters of that call */
    char **settled;  /* "+ID" and "-ID", as queue_tell takes them; owned */
    size_t settled_count, settled_capacity;
    size_t sent; /* the first so many of them are in the call */
    struct command command;
};

/* ---- what is done ---- */

/* Without memory the letter is handed out again later. */
static void settle(struct dead_hook *dead_hook, char sign, const char *id)
{
    if (dead_hook->settled_count == dead_hook->settled_capacity) {
        size_t capacity = dead_hook->settled_capacity ? dead_hook->settled_capacity * 2 : 8;
        char **grown = reallocarray(dead_hook->settled, capacity, sizeof *grown);
        if (!grown) {
            return;
        }
        dead_hook->settled = grown;
        dead_hook->settled_capacity = capacity;
    }
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

/* A program that fails has been run, and that is all that is promised. One that could not be run,
 * or was not let finish, is another worker's to run. */
static bool was_run(const struct ending *ending)
{
    switch (ending->cause) {
    case CAUSE_EXIT:
    case CAUSE_SIGNAL:
    case CAUSE_KILLED:
    case CAUSE_OOM:
    case CAUSE_TIMEOUT:
    case CAUSE_OUTPUT_LIMIT:
    case CAUSE_CANNOT_EXECUTE:
    case CAUSE_REFUSED:
    case CAUSE_REPORTED:
    case CAUSE_CHECK:
    case CAUSE_DONE:
        return true;
    case CAUSE_HOST:
    case CAUSE_NO_PROGRAM:
    case CAUSE_LEASE_LOST:
    case CAUSE_SHUTDOWN:
    case CAUSE_BATCH:
    case CAUSE_CANCELLED:
        break;
    }
    return false;
}

static void on_ended(void *context, struct attempt *attempt)
{
    struct dead_hook *dead_hook = context;
    bool run = was_run(&attempt->ending);
    dead_hook->broken |= attempt->ending.cause == CAUSE_HOST;
    task_log_told(attempt, run);
    settle(dead_hook, run ? '+' : '-', attempt->task->token);
    attempt_free(attempt);
}

/* ---- letters ---- */

/* After a letter has been with a worker for so long, that worker is dead. */
static int64_t wait_ms(const struct dead_hook *dead_hook)
{
    const struct config *config = dead_hook->config;
    return config->dead.notify_timeout_ms + config->task.kill_grace_ms + config->queue.lease_ms;
}

static void take(struct dead_hook *dead_hook, struct dead_letter_reply *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct claimed_task begun = {.task = answer->letters[i]};
        if (runner_start(dead_hook->runner, &begun, 1)) {
            log_text(LOG_ERR, "task %s: nobody is told of the dead letter yet: out of memory",
                     answer->letters[i]->tid);
        } else {
            answer->letters[i] = NULL;
        }
    }
}

static void on_told(void *context, const struct redisReply *reply)
{
    struct dead_hook *dead_hook = context;
    struct dead_letter_reply answer;
    dead_hook->calling = false;
    if (!reply) {
        return; /* the same is sent again in the next session */
    }
    if (dead_letter_read(reply, &answer)) {
        /* it must not disturb the tasks: whatever the other calls need, too, they notice themselves
         */
        char why[512];
        queue_explain(reply, why, sizeof why);
        log_text(dead_hook->complained ? LOG_DEBUG : LOG_WARNING,
                 "cannot tell of dead letters now: %s", why);
        dead_hook->refused = dead_hook->complained = true;
        return;
    }
    dead_hook->complained = false;
    forget_settled(dead_hook, dead_hook->sent);
    dead_hook->ask |= dead_hook->wanted > 0 && answer.count >= dead_hook->wanted;
    task_log_untold(answer.given_up);
    take(dead_hook, &answer);
    dead_letter_reply_free(&answer);
}

static size_t room(const struct dead_hook *dead_hook)
{
    bool wants = dead_hook->ask && !dead_hook->closed && !dead_hook->broken && dead_hook->runner &&
                 dead_hook->config->dead.notify;
    size_t most = wants ? (size_t)dead_hook->config->dead.notify_jobs : 0;
    size_t running = wants ? runner_count(dead_hook->runner) : 0;
    return most > running ? most - running : 0;
}

void dead_hook_turn(struct dead_hook *dead_hook)
{
    size_t wanted = room(dead_hook);
    if ((wanted == 0 && dead_hook->settled_count == 0) || dead_hook->calling ||
        dead_hook->refused || !session_is_up(dead_hook->session)) {
        return;
    }
    queue_tell(&dead_hook->command, dead_hook->queue, (int64_t)wanted, wait_ms(dead_hook),
               dead_hook->settled, dead_hook->settled_count);
    if (session_send(dead_hook->session, &dead_hook->command, on_told, dead_hook)) {
        session_recover(dead_hook->session, REDIS_ERROR_LOST, "cannot send a command");
        return;
    }
    dead_hook->calling = true;
    dead_hook->sent = dead_hook->settled_count;
    dead_hook->wanted = wanted;
    dead_hook->ask = dead_hook->ask && wanted == 0;
}

void dead_hook_ask(struct dead_hook *dead_hook)
{
    dead_hook->ask = true;
}

void dead_hook_look(struct dead_hook *dead_hook)
{
    dead_hook->ask = true;
    dead_hook->broken = dead_hook->refused = false;
}

/* ---- ending ---- */

void dead_hook_close(struct dead_hook *dead_hook)
{
    dead_hook->closed = true;
}

void dead_hook_end(struct dead_hook *dead_hook, enum job_event event)
{
    struct attempt *next;
    for (struct attempt *attempt = dead_hook->runner ? runner_first(dead_hook->runner) : NULL;
         attempt; attempt = next) {
        next = attempt->next;
        runner_end(dead_hook->runner, attempt, event);
    }
}

bool dead_hook_is_quiet(const struct dead_hook *dead_hook)
{
    if (dead_hook->runner && runner_count(dead_hook->runner) > 0) {
        return false;
    }
    return !session_is_up(dead_hook->session) || dead_hook->refused ||
           (!dead_hook->calling && dead_hook->settled_count == 0);
}

/* ---- life ---- */

/* A letter runs like a task whose command the config has: with the end of its stderr as payload. */
static void make_own_config(struct dead_hook *dead_hook, const struct config *config)
{
    dead_hook->config = config;
    dead_hook->own = *config;
    dead_hook->own.task.command = config->dead.notify;
    dead_hook->own.task.timeout_ms = config->dead.notify_timeout_ms;
    dead_hook->own.task.stdin_from = CONFIG_STDIN_PAYLOAD;
    dead_hook->own.task.batch = 1;
    dead_hook->own.task.check = NULL;
    dead_hook->own.retry.exits = (struct config_exits){0};
}

static int make_runner(struct dead_hook *dead_hook)
{
    const struct runner_events events = {
        .ended = on_ended, .stuck = task_log_stuck, .context = dead_hook};
    if (dead_hook->runner) {
        runner_set_config(dead_hook->runner, &dead_hook->own);
    } else if (dead_hook->config->dead.notify) {
        dead_hook->runner = runner_new_beside(dead_hook->tasks, &dead_hook->own, &events);
        return dead_hook->runner ? 0 : -1;
    }
    return 0;
}

struct dead_hook *dead_hook_new(const struct config *config, struct session *session,
                                struct runner *tasks, const struct queue *queue)
{
    struct dead_hook *dead_hook = calloc(1, sizeof *dead_hook);
    if (!dead_hook) {
        return NULL;
    }
    dead_hook->session = session;
    dead_hook->queue = queue;
    dead_hook->tasks = tasks;
    make_own_config(dead_hook, config);
    if (make_runner(dead_hook)) {
        free(dead_hook);
        return NULL;
    }
    return dead_hook;
}

void dead_hook_set_config(struct dead_hook *dead_hook, const struct config *config)
{
    make_own_config(dead_hook, config);
    if (make_runner(dead_hook)) {
        log_text(LOG_ERR, "nobody is told of dead letters: out of memory");
    }
    dead_hook_look(dead_hook);
}

void dead_hook_free(struct dead_hook *dead_hook)
{
    if (dead_hook) {
        runner_free(dead_hook->runner);
        forget_settled(dead_hook, dead_hook->settled_count);
        free(dead_hook->settled);
        command_free(&dead_hook->command);
        free(dead_hook);
    }
}
