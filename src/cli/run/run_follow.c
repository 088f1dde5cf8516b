/*
 * leat run: following the task: its output, its end, and the signals that are to end it.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/lib/moment.h"
#include "cli/lib/reply_fields.h"
#include "cli/run/run.h"
#include "cli/show/show.h"
#include "cli/wait/await.h"
#include "cli/wait/retry_call.h"
#include "cli/wait/stall.h"
#include "queue/result_streams.h"

#define ENTRIES 64     /* in one read */
#define BLOCK_MS 20000 /* a silent connection is dead or alive */
#define LOOK_MS 60000  /* so often it is looked whether the task is still there */
#define CANCEL_TRIES 20
#define CANCEL_MS 1000 /* then they are made again */

struct follow {
    struct cli *cli;
    const char *tid;
    struct patience patience;
    struct command command;
    char last[QUEUE_CURSOR_SIZE];   /* the last entry of output that was taken */
    int64_t attempt, fence, offset; /* of what is coming out; 0: nothing yet */
    bool told;                      /* how the last attempt ended was said */
    bool ended, done, left;         /* its end is known; all is out; it is not waited for */
    int status;                     /* of the end, */
    char text[512];                 /* and what is to be said of it */
    int signals;                    /* how many were dealt with */
    bool unwanted, asked, refused;  /* to be cancelled: it is; it is under way; it must not be */
    bool closed[3];                 /* nobody takes that output any more */
    bool reading;                   /* a read is under way: a signal came meanwhile, */
    int64_t block_ms;               /* for so long */
    int64_t cancel_ns;              /* no sooner is it tried again */
    int64_t looked_ns;
    struct stall stall;
};

/* ---- signals */

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals = signals + 1;
}

static const int caught[] = {SIGINT, SIGTERM};

void run_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, found;

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        /* what was ignored when leat began stays so */
        if (sigaction(caught[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN) {
            (void)sigaction(caught[i], &action, NULL);
        }
    }
}

/* Let in only while something is waited for. `before`: what is blocked then. */
static void block_signals(sigset_t *before)
{
    sigset_t blocked;

    (void)sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        (void)sigaddset(&blocked, caught[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &blocked, before);
}

/* ---- cancelling, over a connection of its own: the other one blocks */

/* The token of the entry in which the task stands; "" where it is in none, or nowhere. */
static void find_token(struct cli *cli, const char *tid, char *token, size_t size)
{
    int status;
    struct redisReply *found = show_find_live(cli, tid, &status);

    token[0] = '\0';
    if (found) {
        bytes_copy(fields_bytes(found->element[2], "token"), token, size);
    }
    freeReplyObject(found);
}

/* Returns whether it was found: it is gone, or its worker will end it. */
static bool cancel_once(struct cli *cli, const char *tid, const char *token, int *status)
{
    struct command command = {0};
    struct redisReply *reply;
    bool found = false;

    queue_cancel_begin(&command, &cli->queue, true);
    queue_cancel_add(&command, tid, token);
    reply = cli_call(cli, &command, "cannot cancel the task", 2, status);
    command_free(&command);
    if (reply) {
        found = !bytes_equal(fields_value(reply->element[1]), "gone");
        freeReplyObject(reply);
    }
    return found;
}

/* Where it is not found, it has ended, or passes on: its end comes, or the next try finds it. */
static void cancel(struct follow *follow)
{
    struct cli other = *follow->cli;
    char token[QUEUE_CURSOR_SIZE] = "";
    int status;

    follow->unwanted = true;
    other.client = NULL;
    status = cli_connect(&other);
    for (int i = 0; i < CANCEL_TRIES && status == EX_OK && !follow->asked; i++) {
        follow->asked = cancel_once(&other, follow->tid, token, &status);
        if (!follow->asked && status == EX_OK) {
            find_token(&other, follow->tid, token, sizeof token);
        }
    }
    cli_disconnect(&other);
    follow->refused = status != EX_OK && status != EX_UNAVAILABLE && status != EX_TEMPFAIL;
    follow->cancel_ns = clock_boot_ns() + CANCEL_MS * CLOCK_NS_PER_MS;
}

static bool is_to_be_cancelled(const struct follow *follow)
{
    return follow->unwanted && !follow->asked && !follow->refused;
}

/* Those that wait are counted, also where nothing has to be waited for. */
static void let_in(const struct follow *follow)
{
    sigset_t blocked;

    (void)sigprocmask(SIG_SETMASK, follow->patience.mask, &blocked);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* The first cancels, each further one leaves. */
static void take_signals(struct follow *follow)
{
    let_in(follow);
    if (signals == follow->signals) {
        return;
    }
    if (follow->signals > 0 || signals > 1) {
        cli_error("task %s is left alone%s", follow->tid,
                  follow->asked ? ": it is being cancelled" : "; leat cancel ends it");
        follow->left = true;
    } else {
        cli_error("cancelling task %s; once more leaves it alone", follow->tid);
        cancel(follow);
    }
    follow->signals = signals;
}

/* ---- output */

/* A signal ends the wait for room, and no more is written than a pipe then takes at once. */
static bool write_some(const struct follow *follow, int number, const char **data, size_t *size)
{
    struct pollfd room = {.fd = number, .events = POLLOUT};
    ssize_t written;

    if (ppoll(&room, 1, NULL, follow->patience.mask) < 0) {
        return errno == EINTR;
    }
    written = write(number, *data, *size < PIPE_BUF ? *size : PIPE_BUF);
    /* it may have been left non-blocking by whoever shares it */
    if (written < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    *data += written;
    *size -= (size_t)written;
    return true;
}

/* Who has closed the output that leat writes to wants no more of the task. */
static void lose_reader(struct follow *follow, int number)
{
    if (errno != EPIPE) {
        cli_error("cannot write the output: %s", strerror(errno));
    }
    follow->closed[number] = true;
    if (!follow->asked) {
        cancel(follow);
    }
}

static void write_out(struct follow *follow, int number, struct bytes data)
{
    const char *at = data.data;
    size_t left = data.size;

    for (take_signals(follow); left > 0 && !follow->left && !follow->closed[number];
         take_signals(follow)) {
        if (!write_some(follow, number, &at, &left)) {
            lose_reader(follow, number);
        }
    }
}

static void tell_lost(const struct follow *follow, int64_t bytes)
{
    if (bytes > 0) {
        cli_error("task %s: %lld bytes of its output are lost here", follow->tid, (long long)bytes);
    }
}

/* Bytes may come twice, after a connection broke, or not at all. */
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
    tell_lost(follow, offset - follow->offset);
    follow->offset = offset + (int64_t)data.size;
    if (number == STDOUT_FILENO || number == STDERR_FILENO) {
        write_out(follow, number, data);
    }
}

static void tell_end(struct follow *follow, const struct redisReply *fields)
{
    char how[64], wait[MOMENT_SIZE];

    bytes_copy(fields_bytes(fields, "how"), how, sizeof how);
    moment_span(fields_number(fields, "delay_ms", 0), wait, sizeof wait);
    follow->told = true;
    if (bytes_equal(fields_bytes(fields, "ended"), "retry")) {
        cli_error("task %s: attempt %lld: %s; again in %s", follow->tid, (long long)follow->attempt,
                  how, wait);
    } else if (bytes_equal(fields_bytes(fields, "ended"), "release")) {
        cli_error("task %s: attempt %lld: %s; it is run again", follow->tid,
                  (long long)follow->attempt, how);
    }
}

/* Another run of the task begins. */
static void begin_run(struct follow *follow, int64_t attempt, int64_t fence, struct bytes worker)
{
    char name[256];

    bytes_copy(worker, name, sizeof name);
    if (follow->fence > 0) {
        cli_error("task %s: attempt %lld%s%s%s", follow->tid, (long long)attempt,
                  *name ? " on " : "", name, follow->told ? "" : "; the worker before was lost");
    }
    follow->attempt = attempt;
    follow->fence = fence;
    follow->offset = 0;
    follow->told = false;
}

static void take_output(struct follow *follow, const struct queue_entry *entry)
{
    const struct redisReply *fields = entry->fields;
    int64_t fence = fields_number(fields, "fence", 0);
    int64_t offset = fields_number(fields, "offset", 0);

    bytes_copy(bytes_of(entry->id), follow->last, sizeof follow->last);
    /* what a worker that was cut off still had to say */
    if (fence < follow->fence) {
        return;
    }
    if (fence > follow->fence) {
        begin_run(follow, fields_number(fields, "attempt", 0), fence,
                  fields_bytes(fields, "worker"));
    }
    take_data(follow, offset, (int)fields_number(fields, "fd", 0), fields_bytes(fields, "data"));
    if (fields_bytes(fields, "ended").size > 0) {
        tell_end(follow, fields);
    }
}

/* ---- the end */

static void take_end(struct follow *follow, const struct ended *ended)
{
    follow->status = run_status(ended, follow->text, sizeof follow->text);
    follow->ended = true;
}

static int on_ended(void *context, const char *tid, const char *asked, const struct ended *ended)
{
    struct follow *follow = context;

    (void)tid;
    (void)asked;
    if (!follow->ended) {
        take_end(follow, ended);
    }
    return EX_OK;
}

static void on_entry(void *context, const struct queue_entry *entry)
{
    struct follow *follow = context;
    struct ended ended;

    if (follow->left) {
        return;
    }
    if (entry->kind == QUEUE_OUTPUT) {
        take_output(follow, entry);
    } else if (!follow->ended) {
        ended_read_result(entry->fields, &ended);
        take_end(follow, &ended);
    }
}

/* ---- reading */

/* Steps return how many entries came, or -1 where a call failed or patience.status was set. */

static int take_reply(struct follow *follow, struct redisReply *reply)
{
    int count = queue_read_entries(&follow->cli->queue, reply, on_entry, follow);

    freeReplyObject(reply);
    if (count < 0) {
        cli_error("Redis answered in a form that this leat does not know: install the same "
                  "version everywhere");
        follow->patience.status = EX_PROTOCOL;
    }
    return count;
}

/* One that writes has begun, unless its attempt has ended since. */
static bool is_running(const struct follow *follow)
{
    return follow->fence > 0 && !follow->told;
}

/* Output, and the result: whichever comes. */
static int read_next(struct follow *follow)
{
    const struct queue_source sources[] = {{QUEUE_OUTPUT, follow->tid, follow->last},
                                           {QUEUE_RESULT, follow->tid, QUEUE_FROM_START}};
    struct redisReply *reply;

    if (!follow->reading) {
        int64_t most_ms = is_to_be_cancelled(follow) ? CANCEL_MS : BLOCK_MS;
        follow->block_ms = is_running(follow) ? most_ms : stall_left_ms(&follow->stall, most_ms);
        queue_read(&follow->command, &follow->cli->queue, sources, 2, ENTRIES, follow->block_ms);
    }
    reply = patience_block(&follow->patience, follow->cli,
                           follow->reading ? NULL : &follow->command, follow->block_ms);
    follow->reading = !reply && follow->patience.error == REDIS_ERROR_NONE;
    return reply ? take_reply(follow, reply) : -1;
}

/* The rest of the output: all of it was written before the result was. */
static int read_rest(struct follow *follow)
{
    int count = 1;

    while (count > 0 && !follow->left) {
        const struct queue_source source = {QUEUE_OUTPUT, follow->tid, follow->last};
        struct redisReply *reply;
        queue_read(&follow->command, &follow->cli->queue, &source, 1, ENTRIES, 0);
        reply = patience_call(&follow->patience, follow->cli, &follow->command, 0);
        count = reply ? take_reply(follow, reply) : -1;
    }
    return count;
}

/* Whether the task is still there: whoever deletes it tells nobody, and Redis may have lost it. */
static void look(struct follow *follow)
{
    const struct await_events events = {.ended = on_ended, .context = follow};
    char *id = (char *)follow->tid;
    size_t left;

    follow->looked_ns = clock_boot_ns();
    /* at the deadline it has looked once; what fails now fails again with the next call */
    (void)await_tasks(follow->cli, &id, 1, clock_boot_ns(), &events, &left);
}

static bool is_time_to_look(const struct follow *follow)
{
    return clock_boot_ns() - follow->looked_ns >= LOOK_MS * CLOCK_NS_PER_MS;
}

/* ---- from beginning to end: these return 0 to go on, or an exit status */

static int reconnect(struct follow *follow)
{
    int status = patience_reconnect(&follow->patience, follow->cli);

    follow->reading = false;
    if (status == PATIENCE_SIGNAL) {
        return 0;
    }
    if (status == 0) {
        look(follow);
    }
    return status;
}

static int step(struct follow *follow)
{
    bool ended = follow->ended;
    int count;

    take_signals(follow);
    if (follow->left) {
        return 0;
    }
    if (!follow->cli->client) {
        return reconnect(follow);
    }
    if (is_to_be_cancelled(follow) && clock_boot_ns() >= follow->cancel_ns) {
        cancel(follow);
    }
    count = ended ? read_rest(follow) : read_next(follow);
    if (count < 0) {
        if (follow->patience.error != REDIS_ERROR_NONE) {
            cli_disconnect(follow->cli);
        }
        return follow->patience.status;
    }
    patience_end(&follow->patience);
    follow->done = ended && count == 0;
    if (!ended && count == 0 && is_time_to_look(follow)) {
        look(follow);
    }
    if (!ended && count == 0 && !is_running(follow) && stall_is_due(&follow->stall)) {
        stall_look(&follow->stall, follow->cli);
    }
    return 0;
}

int run_follow(struct cli *cli, const char *tid)
{
    sigset_t before;
    struct follow follow = {
        .cli = cli,
        .tid = tid,
        .patience = {.what = "cannot follow the task", .deadline_ns = INT64_MAX, .mask = &before},
        .last = QUEUE_FROM_START,
        .looked_ns = clock_boot_ns(),
    };
    int status;

    block_signals(&before);
    do {
        status = step(&follow);
    } while (status == 0 && !follow.done && !follow.left);
    command_free(&follow.command);
    if (status != 0) {
        return status;
    }
    if (follow.closed[STDOUT_FILENO] || follow.closed[STDERR_FILENO]) {
        return EX_IOERR;
    }
    if (follow.left) {
        return RUN_CANCELLED;
    }
    if (*follow.text) {
        cli_error("task %s: %s", tid, follow.text);
    }
    return follow.status;
}
