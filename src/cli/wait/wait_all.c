/*
 * leat wait --all: waits until the queue is empty, with progress on a terminal. Each task that ends
 * wakes it up; it then checks the queue, at most a few times per second.
 */
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/lib/output.h"
#include "cli/status/status.h"
#include "cli/wait/retry_call.h"
#include "cli/wait/stall.h"
#include "cli/wait/wait.h"
#include "queue/calls.h"
#include "queue/replies.h"
#include "queue/result_streams.h"
#include "view/moment.h"
#include "view/reply_fields.h"

#define ALL_TASKS "*"
#define CHECK_MS 250   /* least time between two checks of the queue */
#define BLOCK_MS 20000 /* of a read: afterwards a dead connection is noticed */
#define RENEW_MS                                                                                   \
    60000 /* between announcements that somebody waits, and between checks without a wakeup */
#define AWAIT_MS 150000 /* how long an announcement is valid */
#define BAR_WIDTH 20
#define LINE_SIZE 160
#define AVERAGE_NS (10 * CLOCK_NS_PER_S) /* over which the rate is averaged, roughly */

struct figures {
    int64_t ready, running, retrying, delayed;
    int64_t succeeded, dead, cancelled; /* since the queue was created */
};

struct watch {
    struct cli *cli;
    const struct wait_options *options;
    struct retry retry;
    struct command command;
    char last_wakeup[QUEUE_CURSOR_SIZE]; /* id of the last one that was read */
    struct figures first, now;
    bool seen; /* `first` is set */
    bool drawn;
    double rate; /* tasks that end per second, on average; 0: unknown */
    int64_t checked_ns, renewed_ns;
    int64_t expires_ns; /* when the first task that has not started expires; INT64_MAX: never */
    struct stall stall;
};

/* Steps return 0, or -1 if a call failed or retry.status was set. */

/* ---- progress */

static int64_t left_of(const struct figures *figures)
{
    return figures->ready + figures->running + figures->retrying;
}

static int64_t ended_of(const struct figures *figures)
{
    return figures->succeeded + figures->dead + figures->cancelled;
}

static void update_rate(struct watch *watch, const struct figures *before, int64_t before_ns)
{
    double span_ns = (double)(watch->checked_ns - before_ns);
    double ends = (double)(ended_of(&watch->now) - ended_of(before));
    double rate = span_ns > 0 ? ends * (double)CLOCK_NS_PER_S / span_ns : 0;
    double share = span_ns < (double)AVERAGE_NS ? span_ns / (double)AVERAGE_NS : 1;

    watch->rate = watch->rate > 0 ? watch->rate + (rate - watch->rate) * share : rate;
}

static size_t terminal_width(void)
{
    struct winsize window;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
}

/* Failures do not matter: the line is only a hint. */
static void draw(struct watch *watch)
{
    static const char full[] = "####################";
    int64_t left = left_of(&watch->now), done = ended_of(&watch->now) - ended_of(&watch->first);
    double share = left + done > 0 ? (double)done / (double)(left + done) : 1;
    char line[LINE_SIZE], span[MOMENT_SIZE] = "", rate[MOMENT_SIZE + 32] = "";

    if (isatty(STDERR_FILENO) != 1) {
        return;
    }
    if (watch->rate > 0) {
        moment_span((int64_t)((double)left / watch->rate * 1000), span, sizeof span);
        (void)snprintf(rate, sizeof rate, ", %.1f/s, about %s", watch->rate, span);
    }
    (void)snprintf(line, sizeof line,
                   "[%-*.*s] %3.0f%%  %lld left%s (%lld ready, %lld running, %lld retrying)",
                   BAR_WIDTH, (int)(share * BAR_WIDTH), full, share * 100, (long long)left, rate,
                   (long long)watch->now.ready, (long long)watch->now.running,
                   (long long)watch->now.retrying);
    (void)fprintf(stderr, "\r\033[K%.*s", (int)terminal_width() - 1, line);
    (void)fflush(stderr);
    watch->drawn = true;
}

static void clear_line(struct watch *watch)
{
    if (watch->drawn) {
        (void)fputs("\r\033[K", stderr);
    }
    watch->drawn = false;
}

/* ---- calls */

static struct redisReply *call(struct watch *watch, size_t elements)
{
    return retry_call(&watch->retry, watch->cli, &watch->command, elements);
}

static void read_figures(const struct redisReply *figures, struct figures *out)
{
    *out = (struct figures){
        .ready = fields_number(figures, "ready", 0),
        .running = fields_number(figures, "running", 0),
        .retrying = fields_number(figures, "retrying", 0),
        .delayed = fields_number(figures, "delayed", 0),
        .succeeded = fields_number(figures, "total_succeeded", 0),
        .dead = fields_number(figures, "total_dead", 0),
        .cancelled = fields_number(figures, "total_cancelled", 0),
    };
}

static int check(struct watch *watch)
{
    struct figures before = watch->now;
    int64_t before_ns = watch->checked_ns;
    struct redisReply *reply;

    queue_status(&watch->command, &watch->cli->queue);
    reply = call(watch, STATUS_ELEMENTS);
    if (!reply) {
        return -1;
    }
    read_figures(reply->element[2], &watch->now);
    if (left_of(&watch->now) > 0 && stall_is_due(&watch->stall) &&
        stall_read(&watch->stall, watch->cli, reply)) {
        clear_line(watch);
        stall_tell(&watch->stall, watch->cli);
    }
    freeReplyObject(reply);
    watch->checked_ns = clock_boot_ns();
    if (watch->seen) {
        update_rate(watch, &before, before_ns);
    } else {
        watch->first = watch->now;
    }
    watch->seen = true;
    draw(watch);
    return 0;
}

static int renew(struct watch *watch)
{
    struct redisReply *reply;
    int64_t expires_ms;

    watch->renewed_ns = clock_boot_ns();
    queue_await_begin(&watch->command, &watch->cli->queue, AWAIT_MS);
    queue_await_add(&watch->command, ALL_TASKS);
    reply = call(watch, 2);
    if (!reply) {
        return -1;
    }
    expires_ms = queue_await_expires_ms(reply, 1);
    watch->expires_ns =
        expires_ms < 0 ? INT64_MAX : clock_boot_ns() + (expires_ms + 1) * CLOCK_NS_PER_MS;
    freeReplyObject(reply);
    return 0;
}

static void on_wakeup(void *context, const struct queue_entry *entry)
{
    struct watch *watch = context;

    bytes_copy(bytes_of(entry->id), watch->last_wakeup, sizeof watch->last_wakeup);
}

/* Reads the wakeups since the last one, or waits for one. Returns their number, or -1. */
static int read_wakeups(struct watch *watch, int64_t block_ms)
{
    const struct queue_source source = {QUEUE_RESULT, ALL_TASKS, watch->last_wakeup};
    struct redisReply *reply;
    int wakeups;

    queue_read(&watch->command, &watch->cli->queue, &source, 1, 1, block_ms);
    reply = block_ms > 0 ? retry_blocking_call(&watch->retry, watch->cli, &watch->command, block_ms)
                         : call(watch, 0);
    if (!reply) {
        return -1;
    }
    wakeups = queue_read_entries(&watch->cli->queue, reply, on_wakeup, watch);
    freeReplyObject(reply);
    if (wakeups < 0) {
        watch->retry.status = EX_PROTOCOL;
    }
    return wakeups;
}

/* ---- waiting */

/* Waits between two checks. The next read gets wakeups that come meanwhile. */
static void pause_between(const struct watch *watch)
{
    int64_t until_ns = watch->checked_ns + CHECK_MS * CLOCK_NS_PER_MS, now_ns = clock_boot_ns();
    int64_t deadline_ns = watch->retry.deadline_ns;
    int64_t left_ns = (until_ns < deadline_ns ? until_ns : deadline_ns) - now_ns;
    struct timespec left = {.tv_nsec = (long)left_ns};

    /* a signal may cut it short */
    if (left_ns > 0) {
        (void)nanosleep(&left, NULL);
    }
}

/* Waits until the queue is empty, or until the deadline. */
static int follow(struct watch *watch)
{
    /* in this order, so that no end is missed: those after the announcement wake it up */
    if (renew(watch) || read_wakeups(watch, 0) < 0 || check(watch)) {
        return -1;
    }
    retry_recovered(&watch->retry);
    while (left_of(&watch->now) > 0 && clock_boot_ns() < watch->retry.deadline_ns) {
        int64_t block_ms =
            retry_until_ms(watch->expires_ns, stall_left_ms(&watch->stall, BLOCK_MS));
        int wakeups = read_wakeups(watch, retry_left_ms(&watch->retry, block_ms));
        bool stalled = wakeups == 0 && stall_is_due(&watch->stall);
        bool old = clock_boot_ns() >= watch->expires_ns ||
                   clock_boot_ns() - watch->renewed_ns >= RENEW_MS * CLOCK_NS_PER_MS;
        if (wakeups < 0 || (old && renew(watch))) {
            return -1;
        }
        if (wakeups > 0) {
            pause_between(watch);
        }
        if ((wakeups > 0 || old || stalled) && check(watch)) {
            return -1;
        }
    }
    return 0;
}

/* Prints what has ended since the first check. */
static int report(const struct watch *watch)
{
    const struct figures *first = &watch->first, *now = &watch->now;
    int64_t succeeded = now->succeeded - first->succeeded, dead = now->dead - first->dead;
    int64_t cancelled = now->cancelled - first->cancelled;
    int status = EX_OK;

    if (watch->options->json) {
        status = output_json(json_pack("{s:I, s:I, s:I, s:I}", "succeeded", (json_int_t)succeeded,
                                       "dead", (json_int_t)dead, "cancelled", (json_int_t)cancelled,
                                       "delayed", (json_int_t)now->delayed),
                             false);
    } else {
        status = output_printf(
            "empty: %lld succeeded, %lld dead, %lld cancelled meanwhile; %lld delayed\n",
            (long long)succeeded, (long long)dead, (long long)cancelled, (long long)now->delayed);
    }
    if (status != EX_OK) {
        return status;
    }
    return dead > 0 || cancelled > 0 ? WAIT_NOT_ALL : EX_OK;
}

static int give_up(const struct watch *watch)
{
    if (!watch->seen) {
        cli_error("Redis did not tell within %s whether the queue is empty",
                  watch->options->timeout);
        return EX_TEMPFAIL;
    }
    cli_error("the queue is not empty after %s: %lld ready, %lld running, %lld retrying",
              watch->options->timeout, (long long)watch->now.ready, (long long)watch->now.running,
              (long long)watch->now.retrying);
    return EX_TEMPFAIL;
}

int wait_all(struct cli *cli, const struct wait_options *options)
{
    struct watch watch = {
        .cli = cli,
        .options = options,
        .retry = {.what = "cannot check the queue", .deadline_ns = options->deadline_ns},
        .last_wakeup = QUEUE_FROM_START,
    };
    int status = cli_connect(cli);

    if (status != EX_OK) {
        return status;
    }
    while (status == EX_OK && follow(&watch)) {
        clear_line(&watch);
        status = watch.retry.status;
        status = status == EX_OK ? retry_reconnect(&watch.retry, cli) : status;
    }
    clear_line(&watch);
    command_free(&watch.command);
    if (status == EX_TEMPFAIL || (status == EX_OK && left_of(&watch.now) > 0)) {
        return give_up(&watch);
    }
    return status == EX_OK ? report(&watch) : status;
}
