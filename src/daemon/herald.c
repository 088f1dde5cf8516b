#include "daemon/herald.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/record.h"
#include "queue/letter.h"

struct herald {
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
static void settle(struct herald *herald, char sign, const char *id)
{
    if (herald->settled_count == herald->settled_capacity) {
        size_t capacity = herald->settled_capacity ? herald->settled_capacity * 2 : 8;
        char **grown = reallocarray(herald->settled, capacity, sizeof *grown);
        if (!grown) {
            return;
        }
        herald->settled = grown;
        herald->settled_capacity = capacity;
    }
    char *what;
    if (asprintf(&what, "%c%s", sign, id) >= 0) {
        herald->settled[herald->settled_count++] = what;
    }
}

static void forget_settled(struct herald *herald, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(herald->settled[i]);
    }
    herald->settled_count -= count;
    for (size_t i = 0; i < herald->settled_count; i++) {
        herald->settled[i] = herald->settled[i + count];
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
    struct herald *herald = context;
    bool run = was_run(&attempt->ending);
    herald->broken |= attempt->ending.cause == CAUSE_HOST;
    record_told(attempt, run);
    settle(herald, run ? '+' : '-', attempt->task->token);
    attempt_free(attempt);
}

/* ---- letters ---- */

/* After a letter has been with a worker for so long, that worker is dead. */
static int64_t wait_ms(const struct herald *herald)
{
    const struct config *config = herald->config;
    return config->dead.notify_timeout_ms + config->task.kill_grace_ms + config->queue.lease_ms;
}

static void take(struct herald *herald, struct letter_reply *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct begun begun = {.task = answer->letters[i]};
        if (runner_start(herald->runner, &begun, 1)) {
            log_text(LOG_ERR, "task %s: nobody is told of the dead letter yet: out of memory",
                     answer->letters[i]->tid);
        } else {
            answer->letters[i] = NULL;
        }
    }
}

static void on_told(void *context, const struct redisReply *reply)
{
    struct herald *herald = context;
    struct letter_reply answer;
    herald->calling = false;
    if (!reply) {
        return; /* the same is sent again in the next session */
    }
    if (letter_read(reply, &answer)) {
        /* it must not disturb the tasks: whatever the other calls need, too, they notice themselves
         */
        char why[512];
        queue_explain(reply, why, sizeof why);
        log_text(herald->complained ? LOG_DEBUG : LOG_WARNING,
                 "cannot tell of dead letters now: %s", why);
        herald->refused = herald->complained = true;
        return;
    }
    herald->complained = false;
    forget_settled(herald, herald->sent);
    herald->ask |= herald->wanted > 0 && answer.count >= herald->wanted;
    record_untold(answer.given_up);
    take(herald, &answer);
    letter_reply_free(&answer);
}

static size_t room(const struct herald *herald)
{
    bool wants = herald->ask && !herald->closed && !herald->broken && herald->runner &&
                 herald->config->dead.notify;
    size_t most = wants ? (size_t)herald->config->dead.notify_jobs : 0;
    size_t running = wants ? runner_count(herald->runner) : 0;
    return most > running ? most - running : 0;
}

void herald_turn(struct herald *herald)
{
    size_t wanted = room(herald);
    if ((wanted == 0 && herald->settled_count == 0) || herald->calling || herald->refused ||
        !session_is_up(herald->session)) {
        return;
    }
    queue_tell(&herald->command, herald->queue, (int64_t)wanted, wait_ms(herald), herald->settled,
               herald->settled_count);
    if (session_send(herald->session, &herald->command, on_told, herald)) {
        session_recover(herald->session, REDIS_ERROR_LOST, "cannot send a command");
        return;
    }
    herald->calling = true;
    herald->sent = herald->settled_count;
    herald->wanted = wanted;
    herald->ask = herald->ask && wanted == 0;
}

void herald_ask(struct herald *herald)
{
    herald->ask = true;
}

void herald_look(struct herald *herald)
{
    herald->ask = true;
    herald->broken = herald->refused = false;
}

/* ---- ending ---- */

void herald_close(struct herald *herald)
{
    herald->closed = true;
}

void herald_end(struct herald *herald, enum job_event event)
{
    struct attempt *next;
    for (struct attempt *attempt = herald->runner ? runner_first(herald->runner) : NULL; attempt;
         attempt = next) {
        next = attempt->next;
        runner_end(herald->runner, attempt, event);
    }
}

bool herald_is_quiet(const struct herald *herald)
{
    if (herald->runner && runner_count(herald->runner) > 0) {
        return false;
    }
    return !session_is_up(herald->session) || herald->refused ||
           (!herald->calling && herald->settled_count == 0);
}

/* ---- life ---- */

/* A letter runs like a task whose command the config has: with the end of its stderr as payload. */
static void make_own_config(struct herald *herald, const struct config *config)
{
    herald->config = config;
    herald->own = *config;
    herald->own.task.command = config->dead.notify;
    herald->own.task.timeout_ms = config->dead.notify_timeout_ms;
    herald->own.task.stdin_from = CONFIG_STDIN_PAYLOAD;
    herald->own.task.batch = 1;
    herald->own.task.check = NULL;
    herald->own.retry.exits = (struct config_exits){0};
}

static int make_runner(struct herald *herald)
{
    const struct runner_events events = {
        .ended = on_ended, .lingers = record_lingers, .context = herald};
    if (herald->runner) {
        runner_set_config(herald->runner, &herald->own);
    } else if (herald->config->dead.notify) {
        herald->runner = runner_new_beside(herald->tasks, &herald->own, &events);
        return herald->runner ? 0 : -1;
    }
    return 0;
}

struct herald *herald_new(const struct config *config, struct session *session,
                          struct runner *tasks, const struct queue *queue)
{
    struct herald *herald = calloc(1, sizeof *herald);
    if (!herald) {
        return NULL;
    }
    herald->session = session;
    herald->queue = queue;
    herald->tasks = tasks;
    make_own_config(herald, config);
    if (make_runner(herald)) {
        free(herald);
        return NULL;
    }
    return herald;
}

void herald_set_config(struct herald *herald, const struct config *config)
{
    make_own_config(herald, config);
    if (make_runner(herald)) {
        log_text(LOG_ERR, "nobody is told of dead letters: out of memory");
    }
    herald_look(herald);
}

void herald_free(struct herald *herald)
{
    if (herald) {
        runner_free(herald->runner);
        forget_settled(herald, herald->settled_count);
        free(herald->settled);
        command_free(&herald->command);
        free(herald);
    }
}
