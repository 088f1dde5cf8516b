/*
 * leat run and leat attach: follows the task. It writes the output and waits for the result. leat
 * run cancels the task on signals.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/run/run.h"
#include "cli/wait/await.h"
#include "cli/wait/retry_call.h"
#include "cli/wait/stall.h"
#include "queue/calls.h"
#include "queue/replies.h"
#include "queue/result_streams.h"
#include "view/moment.h"
#include "view/reply_fields.h"
#include "view/task_view.h"

#define ENTRIES 64            /* per read */
#define BLOCK_MS 20000        /* of a read: afterwards a dead connection is noticed */
#define CHECK_MS 60000        /* between checks that the task still exists */
#define CANCEL_MS 1000        /* between tries to cancel it */
#define PATIENCE_S 2          /* for which a second signal waits for the answer to such a try */
#define FOLLOW_MS 60000       /* for which its worker is asked for output */
#define FOLLOW_AGAIN_MS 20000 /* after which it is asked again */

struct follow {
    struct cli *cli;
    const char *tid;
    struct run_watch *watch; /* NULL: the task is leat's own, and asks for live output */
    struct retry retry;
    struct command command;
    char last[QUEUE_CURSOR_SIZE];   /* id of the last output entry that was read */
    int64_t attempt, fence, offset; /* of the current output; 0: none yet */
    bool told;                      /* the end of the last attempt was reported */
    bool ended, done, left;         /* result known; all output written; left running */
    int status;                     /* exit status for the result */
    char text[512];                 /* message for the result */
    int signals;                    /* signals that were handled */
    bool unwanted, asked, refused;  /* cancel it; Redis has accepted that; Redis refused it */
    bool closed[3];                 /* the output with this descriptor is closed */
    bool reading;                   /* a read is in flight, since a signal came meanwhile */
    int64_t block_ms;               /* of that read */
    int64_t cancel_ns;              /* time of the next try to cancel */
    int64_t checked_ns;
    int64_t followed_ns; /* time of the next question for output */
    int failed;          /* exit status of a failed write of the watch */
    int64_t expires_ns;  /* if it has not started by then, it has to be checked; INT64_MAX: never */
    struct stall stall;
};

/* ---- signals */

static volatile sig_atomic_t signals;
static char last_words[256]; /* what leat says if it ends during a try to cancel the task */

static void on_signal(int number)
{
    (void)number;
    signals = signals + 1;
    if (signals == 2 && *last_words) {
        (void)alarm(PATIENCE_S);
    }
}

/* The try waits for Redis in calls that no signal ends. Nothing of leat has to be put in order, and
 * a failed write could be told to nobody. */
static void on_alarm(int number)
{
    (void)number;
    (void)!write(STDERR_FILENO, last_words, strlen(last_words));
    _exit(RUN_CANCELLED);
}

static const int caught[] = {SIGINT, SIGTERM};

void run_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, late = {.sa_handler = on_alarm}, found;

    (void)sigemptyset(&late.sa_mask);
    (void)sigaction(SIGALRM, &late, NULL);
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        /* a signal that was ignored at the start stays ignored */
        if (sigaction(caught[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN) {
            (void)sigaction(caught[i], &action, NULL);
        }
    }
}

/* Blocks the signals, except while leat waits. `before`: the mask for these waits. */
static void block_signals(sigset_t *before)
{
    sigset_t blocked;

    (void)sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        (void)sigaddset(&blocked, caught[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &blocked, before);
}

/* ---- cancelling, over a second connection: the first one may be blocked in a read */

/* Returns true if the task was found: it is cancelled, or its worker will stop it. */
static bool cancel_once(struct cli *cli, const char *tid, int *status)
{
    struct command command = {0};
    struct redisReply *reply;
    bool found = false;

    queue_cancel_begin(&command, &cli->queue, true);
    queue_cancel_add(&command, tid, "");
    reply = cli_call(cli, &command, "cannot cancel the task", 2, status);
    if (reply) {
        found = !bytes_equal(fields_value(reply->element[1]), "gone");
        freeReplyObject(reply);
    }
    return found;
}

/* While it tries, a second signal ends leat, at once or if Redis does not answer soon. */
static int try_cancel(struct follow *follow)
{
    struct cli other = *follow->cli;
    sigset_t blocked;
    int status;

    (void)snprintf(
        last_words, sizeof last_words,
        "leat: task %s may go on, since Redis has not answered; leat cancel stops it, leat "
        "attach follows it\n",
        follow->tid);
    if (signals > 1) {
        (void)alarm(PATIENCE_S);
    }
    (void)sigprocmask(SIG_SETMASK, follow->retry.mask, &blocked);
    other.client = NULL;
    status = cli_connect(&other);
    if (status == EX_OK) {
        follow->asked = cancel_once(&other, follow->tid, &status);
    }
    cli_disconnect(&other);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
    (void)alarm(0);
    *last_words = '\0';
    return status;
}

/* Tries to cancel the task. If it is not found, it has ended, and its result comes. */
static void cancel(struct follow *follow)
{
    int status;

    follow->unwanted = true;
    status = try_cancel(follow);
    follow->refused = status != EX_OK && status != EX_UNAVAILABLE && status != EX_TEMPFAIL;
    follow->cancel_ns = clock_boot_ns() + CANCEL_MS * CLOCK_NS_PER_MS;
}

static bool is_to_be_cancelled(const struct follow *follow)
{
    return follow->unwanted && !follow->asked && !follow->refused;
}

/* Unblocks the signals for a moment, so that pending ones are counted. */
static void count_pending(const struct follow *follow)
{
    sigset_t blocked;

    (void)sigprocmask(SIG_SETMASK, follow->retry.mask, &blocked);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* The first signal cancels the task, a further one ends leat without waiting for the task. A task
 * that is only watched is left running by the first one. */
static void take_signal(struct follow *follow)
{
    if (follow->watch) {
        cli_error("task %s goes on; leat cancel stops it", follow->tid);
        follow->left = true;
    } else if (follow->signals > 0) {
        cli_error("task %s is %s", follow->tid,
                  follow->asked ? "being cancelled; leat does not wait for its end"
                                : "left running; leat cancel stops it, leat attach follows it");
        follow->left = true;
    } else {
        cli_error("cancelling task %s; interrupt again to end without waiting for it", follow->tid);
        cancel(follow);
    }
    follow->signals++;
}

static void take_signals(struct follow *follow)
{
    count_pending(follow);
    while (signals != follow->signals && !follow->left) {
        take_signal(follow);
    }
}

/* ---- output */

/* Waits for room, which a signal interrupts, and writes no more than a pipe then takes at once. */
static bool write_some(const struct follow *follow, int number, const char **data, size_t *size)
{
    struct pollfd room = {.fd = number, .events = POLLOUT};
    ssize_t written;

    if (ppoll(&room, 1, NULL, follow->retry.mask) < 0) {
        return errno == EINTR;
    }
    written = write(number, *data, *size < PIPE_BUF ? *size : PIPE_BUF);
    /* another process may have made the descriptor non-blocking */
    if (written < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    *data += written;
    *size -= (size_t)written;
    return true;
}

/* Cancels the task, because the reader of its output has gone. A task that is only watched goes on.
 */
static void lose_reader(struct follow *follow, int number)
{
    if (errno != EPIPE) {
        cli_error("cannot write the output: %s", strerror(errno));
    }
    follow->closed[number] = true;
    if (follow->watch) {
        follow->left = true;
    } else if (!follow->asked) {
        cancel(follow);
    }
}

/* Passes output to the watch. Its write may block, and then signals have to have their effect. */
static void pass_out(struct follow *follow, int number, struct bytes data)
{
    const struct run_watch *watch = follow->watch;
    sigset_t blocked;

    (void)sigprocmask(SIG_SETMASK, follow->retry.mask, &blocked);
    follow->failed = watch->write(watch->context, number, data, follow->attempt);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
    follow->left = follow->left || follow->failed != EX_OK;
}

static void write_out(struct follow *follow, int number, struct bytes data)
{
    const struct run_watch *watch = follow->watch;
    const char *at = data.data;
    size_t left = data.size;

    if (watch && watch->write && data.size > 0) {
        pass_out(follow, number, data);
        left = 0;
    }
    for (take_signals(follow); left > 0 && !follow->left && !follow->closed[number];
         take_signals(follow)) {
        if (!write_some(follow, number, &at, &left)) {
            lose_reader(follow, number);
        }
    }
}

static void report_lost(const struct follow *follow, int64_t bytes)
{
    if (bytes > 0) {
        cli_error("task %s: %lld bytes of output lost", follow->tid, (long long)bytes);
    }
}

/* Writes output. Bytes may come twice after a reconnect, or be missing. */
static void take_data(struct follow *follow, int64_t offset, int number, struct bytes data)
{
    if (offset < follow->offset) {
        size_t known = (size_t)(follow->offset - offset);
        if (known >= data.size) {
            return;
        }
        data = (struct bytes){data.data + known, data.size - known};
        offset = follow->offset;
    }
    report_lost(follow, offset - follow->offset);
    follow->offset = offset + (int64_t)data.size;
    if (number == STDOUT_FILENO || number == STDERR_FILENO) {
        write_out(follow, number, data);
    }
}

static void report_end(struct follow *follow, const struct redisReply *fields)
{
    char how[64], wait[MOMENT_SIZE];

    bytes_copy(fields_bytes(fields, "how"), how, sizeof how);
    moment_span(fields_number(fields, "delay_ms", 0), wait, sizeof wait);
    follow->told = true;
    if (bytes_equal(fields_bytes(fields, "ended"), verdict_name(VERDICT_RETRY))) {
        cli_error("task %s: attempt %lld: %s; retrying in %s", follow->tid,
                  (long long)follow->attempt, how, wait);
    } else if (bytes_equal(fields_bytes(fields, "ended"), verdict_name(VERDICT_RELEASE))) {
        cli_error("task %s: attempt %lld: %s; it will run again", follow->tid,
                  (long long)follow->attempt, how);
    }
}

/* Output of another run of the task begins. What a watched task wrote long before is not missed. */
static void begin_run(struct follow *follow, int64_t attempt, int64_t fence, struct bytes worker,
                      int64_t offset)
{
    bool is_late = follow->watch && follow->fence == 0 && offset > 0;
    char name[256];

    bytes_copy(worker, name, sizeof name);
    if (follow->fence > 0) {
        cli_error("task %s: attempt %lld%s%s%s", follow->tid, (long long)attempt,
                  *name ? " on " : "", name, follow->told ? "" : "; the previous worker was lost");
    }
    follow->attempt = attempt;
    follow->fence = fence;
    follow->offset = is_late ? offset : 0;
    follow->told = false;
    if (is_late) {
        cli_error("task %s: its first %lld bytes of output are not shown", follow->tid,
                  (long long)offset);
    }
}

static void take_output(struct follow *follow, const struct queue_entry *entry)
{
    const struct redisReply *fields = entry->fields;
    int64_t fence = fields_number(fields, "fence", 0);
    int64_t offset = fields_number(fields, "offset", 0);

    bytes_copy(bytes_of(entry->id), follow->last, sizeof follow->last);
    /* late output of a worker that was fenced off */
    if (fence < follow->fence) {
        return;
    }
    if (fence > follow->fence) {
        begin_run(follow, fields_number(fields, "attempt", 0), fence,
                  fields_bytes(fields, "worker"), offset);
    }
    take_data(follow, offset, (int)fields_number(fields, "fd", 0), fields_bytes(fields, "data"));
    if (fields_bytes(fields, "ended").size > 0) {
        report_end(follow, fields);
    }
}

/* ---- the result */

static void take_end(struct follow *follow, const struct result *result)
{
    follow->status = run_status(result, follow->text, sizeof follow->text);
    follow->ended = true;
}

static int on_ended(void *context, const char *tid, const char *asked, const struct result *result)
{
    struct follow *follow = context;

    (void)tid;
    (void)asked;
    if (!follow->ended) {
        take_end(follow, result);
    }
    return EX_OK;
}

static void on_entry(void *context, const struct queue_entry *entry)
{
    struct follow *follow = context;
    struct result result;

    if (follow->left) {
        return;
    }
    if (entry->kind == QUEUE_OUTPUT) {
        take_output(follow, entry);
    } else if (!follow->ended) {
        result_read(entry->fields, &result);
        take_end(follow, &result);
    }
}

/* ---- reading */

/* Steps return the number of entries, or -1 if a call failed or retry.status was set. */

static int take_reply(struct follow *follow, struct redisReply *reply)
{
    int count = queue_read_entries(&follow->cli->queue, reply, on_entry, follow);

    freeReplyObject(reply);
    if (count < 0) {
        follow->retry.status = cli_unexpected_reply();
    }
    return count;
}

/* The task has written output, and that attempt has not ended. A batch sends none. */
static bool is_running(const struct follow *follow)
{
    return follow->fence > 0 && !follow->told;
}

/* Reads output or the result, whichever comes first. */
static int read_next(struct follow *follow)
{
    const struct queue_source sources[] = {{QUEUE_OUTPUT, follow->tid, follow->last},
                                           {QUEUE_RESULT, follow->tid, QUEUE_FROM_START}};
    struct redisReply *reply;

    if (!follow->reading) {
        int64_t most_ms =
            retry_until_ms(follow->expires_ns, is_to_be_cancelled(follow) ? CANCEL_MS : BLOCK_MS);
        follow->block_ms = is_running(follow) ? most_ms : stall_left_ms(&follow->stall, most_ms);
        queue_read(&follow->command, &follow->cli->queue, sources, 2, ENTRIES, follow->block_ms);
    }
    reply = retry_blocking_call(&follow->retry, follow->cli,
                                follow->reading ? NULL : &follow->command, follow->block_ms);
    follow->reading = !reply && follow->retry.error == REDIS_ERROR_NONE;
    return reply ? take_reply(follow, reply) : -1;
}

/* Reads the rest of the output. Workers write all of it before the result. */
static int read_rest(struct follow *follow)
{
    int count = 1;

    while (count > 0 && !follow->left) {
        const struct queue_source source = {QUEUE_OUTPUT, follow->tid, follow->last};
        struct redisReply *reply;
        queue_read(&follow->command, &follow->cli->queue, &source, 1, ENTRIES, 0);
        reply = retry_call(&follow->retry, follow->cli, &follow->command, 0);
        count = reply ? take_reply(follow, reply) : -1;
    }
    return count;
}

/* Checks that the task still exists: an operator may have deleted it, or Redis may have lost it.
 * Sets retry.status if Redis refuses that. If the connection breaks, the next step reconnects. */
static void check_task(struct follow *follow)
{
    const struct await_events events = {
        .ended = on_ended, .context = follow, .expires_ns = &follow->expires_ns};
    char *id = (char *)follow->tid;
    size_t left;
    int status;

    follow->checked_ns = clock_boot_ns();
    /* with this deadline it checks once, and reports a failure */
    status = await_tasks(follow->cli, &id, 1, clock_boot_ns(), &events, &left);
    if (status != EX_OK && status != EX_TEMPFAIL && status != EX_UNAVAILABLE) {
        follow->retry.status = status;
    }
}

/* Asks for the task's output. Its worker may have changed, or have been without Redis. Returns the
 * tid for free(), or NULL as a step that failed. */
static char *ask_worker(struct follow *follow, const char *id)
{
    struct redisReply *reply;
    struct bytes tid;
    char *copy;

    queue_follow(&follow->command, &follow->cli->queue, FOLLOW_MS, id);
    reply = retry_call(&follow->retry, follow->cli, &follow->command, 3);
    if (!reply) {
        return NULL;
    }
    tid = fields_value(reply->element[2]);
    copy = strndup(tid.data, tid.size);
    follow->retry.status = copy ? follow->retry.status : cli_no_memory();
    follow->followed_ns = clock_boot_ns() + FOLLOW_AGAIN_MS * CLOCK_NS_PER_MS;
    freeReplyObject(reply);
    return copy;
}

/* Returns -1 as a step that failed. */
static int ask_again(struct follow *follow)
{
    char *tid = ask_worker(follow, follow->tid);

    free(tid);
    return tid ? 0 : -1;
}

/* Asks whether a worker has the task, even if it has written nothing. Returns false if Redis does
 * not tell: a lost connection is reported by the next step. */
static bool has_worker(const struct follow *follow)
{
    struct command command = {0};
    enum redis_error error;
    struct redisReply *reply;
    char why[512];
    bool has;

    queue_show(&command, &follow->cli->queue, follow->tid, "g0-0");
    reply = client_call(follow->cli->client, &command, &error, why, sizeof why);
    has = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= TASK_VIEW_ELEMENTS &&
          bytes_equal(fields_bytes(reply->element[2], "state"), "running");
    freeReplyObject(reply);
    command_free(&command);
    return has;
}

static bool is_check_due(const struct follow *follow)
{
    int64_t now_ns = clock_boot_ns();

    return now_ns >= follow->expires_ns ||
           now_ns - follow->checked_ns >= CHECK_MS * CLOCK_NS_PER_MS;
}

/* ---- the loop: steps return 0 to continue, or an exit status */

static int reconnect(struct follow *follow)
{
    int status;

    /* if no step has failed, a check has, and has said why */
    if (follow->retry.error == REDIS_ERROR_NONE) {
        follow->retry.error = REDIS_ERROR_LOST;
        follow->retry.told = true;
    }
    status = retry_reconnect(&follow->retry, follow->cli);
    follow->reading = false;
    follow->followed_ns = 0; /* its worker may have lost the question, too */
    if (status == RETRY_SIGNAL) {
        return 0;
    }
    if (status == 0) {
        check_task(follow);
    }
    return status != 0 ? status : follow->retry.status;
}

static int step(struct follow *follow)
{
    bool ended = follow->ended;
    int count;

    take_signals(follow);
    if (follow->left || follow->retry.status != EX_OK) {
        return follow->retry.status;
    }
    if (!follow->cli->client) {
        return reconnect(follow);
    }
    if (is_to_be_cancelled(follow) && clock_boot_ns() >= follow->cancel_ns) {
        cancel(follow);
        return 0; /* a further signal may have come meanwhile */
    }
    count = 0;
    if (follow->watch && !ended && clock_boot_ns() >= follow->followed_ns && !follow->reading) {
        count = ask_again(follow);
    }
    if (count == 0) {
        count = ended ? read_rest(follow) : read_next(follow);
    }
    if (count < 0) {
        if (follow->retry.error != REDIS_ERROR_NONE) {
            cli_disconnect(follow->cli);
        }
        return follow->retry.status;
    }
    retry_recovered(&follow->retry);
    follow->done = ended && count == 0;
    /* the result of a task that is not leat's own is kept only if that is said again in time */
    if (!ended && (count == 0 || follow->watch) && is_check_due(follow)) {
        check_task(follow);
    }
    if (!ended && count == 0 && !is_running(follow) && stall_is_due(&follow->stall)) {
        if (has_worker(follow)) {
            stall_postpone(&follow->stall);
        } else {
            stall_check(&follow->stall, follow->cli);
        }
    }
    return follow->retry.status;
}

/* Returns the exit status. */
static int follow_to_end(struct follow *follow)
{
    int status;

    do {
        status = step(follow);
    } while (status == 0 && !follow->done && !follow->left);
    command_free(&follow->command);
    if (follow->watch) {
        follow->watch->failed = status != 0 ? status : follow->failed;
    }
    if (status != 0 && !follow->ended) {
        cli_error("task %s %sgoes on; its output is not shown here, and leat show %s tells how it "
                  "ends",
                  follow->tid, follow->watch ? "" : "was added and ", follow->tid);
    }
    if (status != 0 || follow->closed[STDOUT_FILENO] || follow->closed[STDERR_FILENO]) {
        return RUN_FAILED;
    }
    if (follow->left) {
        return follow->failed != EX_OK ? RUN_FAILED : RUN_CANCELLED;
    }
    if (*follow->text) {
        cli_error("task %s: %s", follow->tid, follow->text);
    }
    return follow->status;
}

int run_follow(struct cli *cli, const char *tid, bool expires)
{
    sigset_t before;
    struct follow follow = {
        .cli = cli,
        .tid = tid,
        .retry = {.what = "cannot follow the task",
                  .deadline_ns = INT64_MAX,
                  .mask = &before,
                  .worked = true}, /* the task was added */
        .last = QUEUE_FROM_START,
        .checked_ns = clock_boot_ns(),
        .expires_ns = expires ? 0 : INT64_MAX, /* the first check tells */
    };

    block_signals(&before);
    return follow_to_end(&follow);
}

/* Asks for the output before the first check: a task that is found alive then sends it. */
int run_attach(struct cli *cli, const char *id, struct run_watch *watch)
{
    sigset_t before;
    struct follow follow = {
        .cli = cli,
        .watch = watch,
        .retry = {.what = "cannot follow the task", .deadline_ns = INT64_MAX, .mask = &before},
        .last = QUEUE_FROM_START,
        .expires_ns = INT64_MAX, /* the check tells */
    };
    char *tid;
    int status = 0;

    block_signals(&before);
    tid = ask_worker(&follow, id);
    while (!tid && follow.retry.error != REDIS_ERROR_NONE && follow.retry.status == EX_OK) {
        cli_disconnect(cli);
        status = retry_reconnect(&follow.retry, cli);
        if (status != 0) {
            break;
        }
        tid = ask_worker(&follow, id);
    }
    if (tid) {
        follow.tid = tid;
        retry_recovered(&follow.retry);
        check_task(&follow);
        status = follow_to_end(&follow);
        watch->ended = follow.done;
    } else {
        command_free(&follow.command);
        if (status == RETRY_SIGNAL) {
            return RUN_CANCELLED;
        }
        watch->failed = follow.retry.status != EX_OK ? follow.retry.status : EX_UNAVAILABLE;
        status = RUN_FAILED;
    }
    free(tid);
    return status;
}
