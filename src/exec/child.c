#include "exec/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "exec/group.h"

enum {
    SETTLE_MS = 500,   /* how long output is waited for after the exit */
    LINES_READ = 4096, /* one read where each line becomes a record: a turn of the loop stays short
                          even if each of them is empty */
    WATCH_MS = 5, /* after this time output is read as it comes. Before, it waits in the pipe: most
                     short tasks have ended by then, and need no watching of their pipes */
    EXIT_READS = 4, /* reads of each stream at the exit, before the loop has its turn */
};

/* Between looks at a group that is not empty yet. */
static const double first_wait_s = 0.001, zombie_wait_s = 0.008, longest_wait_s = 0.064;

static void feed(struct child *child, enum job_event event);

/* ---- output ---- */

struct line_context {
    const struct child *child;
    const struct child_stream *stream;
};

static void log_line(void *context, const void *data, size_t size)
{
    const struct line_context *line = context;
    const struct task *task = line->child->attempt.task;
    bool is_error = line->stream == &line->child->streams[1];
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)task->attempt); /* fits */
    struct log_field fields[] = {
        LOG_TEXT("LEAT_TASK", task->tid),
        LOG_TEXT("LEAT_ATTEMPT", number),
        LOG_TEXT("LEAT_EVENT", task->end ? "notify-output" : "output"),
        LOG_TEXT("LEAT_STREAM", is_error ? "stderr" : "stdout"),
    };
    log_bytes(is_error ? LOG_NOTICE : LOG_INFO, LOG_ID_TASK_OUTPUT, fields,
              sizeof fields / sizeof *fields, data, size);
}

/* Where the stream's lines go. Returns NULL where nobody wants them. */
static const struct output_lines *lines_of(const struct child_stream *stream,
                                           struct line_context *context, struct output_lines *lines)
{
    const struct config_log_section *log = &stream->child->host->config->log;
    bool is_error = stream == &stream->child->streams[1];
    *context = (struct line_context){.child = stream->child, .stream = stream};
    *lines =
        (struct output_lines){.max = (size_t)log->max_line, .line = log_line, .context = context};
    return log->output && log_wants(is_error ? LOG_NOTICE : LOG_INFO) ? lines : NULL;
}

/* One read. Returns true while there may be more at once. */
static bool stream_read(struct child_stream *stream)
{
    const struct child_host *host = stream->child->host;
    struct line_context context;
    struct output_lines into;
    const struct output_lines *lines = lines_of(stream, &context, &into);
    size_t size = lines && host->scratch_size > LINES_READ ? LINES_READ : host->scratch_size;

    /* the watcher goes before the descriptor does */
    int fd = stream->output.fd;
    bool more = output_read(&stream->output, host->scratch, size,
                            (size_t)host->config->dead.output_tail, lines);
    if (stream->output.fd < 0 && fd >= 0) {
        ev_io_stop(host->loop, &stream->watcher);
    }
    return more;
}

static bool is_silent(const struct child *child)
{
    return child->streams[0].output.fd < 0 && child->streams[1].output.fd < 0;
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int events)
{
    (void)loop;
    (void)events;
    struct child_stream *stream = watcher->data;
    struct child *child = stream->child;
    stream_read(stream);
    if (child->attempt.state == JOB_SETTLING && child->empty && is_silent(child)) {
        feed(child, JOB_QUIET);
    }
}

static void watch_streams(struct child *child)
{
    for (int i = 0; i < 2; i++) {
        struct child_stream *stream = &child->streams[i];
        if (stream->output.fd >= 0 && !ev_is_active(&stream->watcher)) {
            ev_io_set(&stream->watcher, stream->output.fd, EV_READ);
            ev_io_start(child->host->loop, &stream->watcher);
        }
    }
}

/* ---- carrying out ---- */

static void start_pause(struct child *child, double seconds)
{
    struct ev_loop *loop = child->host->loop;
    ev_now_update(loop);
    ev_timer_stop(loop, &child->pause);
    ev_timer_set(&child->pause, seconds, 0);
    ev_timer_start(loop, &child->pause);
}

/* A stopped process is woken to hear it. */
static void send_term(const struct child *child)
{
    group_signal(child->pid, SIGTERM);
    group_signal(child->pid, SIGCONT);
}

/* Kills what the leader left and reaps it, in this order: while it is a zombie its number, and that
 * of its group and session, cannot be another's. */
static void kill_group(struct child *child)
{
    group_signal(child->pid, SIGKILL);

    /* what was there already is read at once; so short tasks end in one turn */
    for (int i = 0; i < 2; i++) {
        for (int reads = 0; reads < EXIT_READS && stream_read(&child->streams[i]); reads++) {
        }
    }

    /* somebody who left the group still writes, or was to be ended with it, or would meet the next
     * attempt */
    const struct ending *ending = &child->attempt.ending;
    if (!is_silent(child) || ending->cause != CAUSE_EXIT || ending->exit_code != 0) {
        group_kill_session(child->pid);
    }
    siginfo_t reaped;
    while (waitid(P_PID, (id_t)child->pid, &reaped, WEXITED) < 0 && errno == EINTR) {
    }
}

/* Zombies do not count, and may stay for long where their parent has left the group, or where
 * process 1 is slow: seen only by a closer look, if they are not gone at once. */
static bool is_group_gone(const struct child *child)
{
    return group_is_empty(child->pid) ||
           (child->wait_s >= zombie_wait_s && !group_is_alive(child->pid));
}

/* Looks what is left of the attempt, and waits on if need be. */
static void settle(struct child *child)
{
    int64_t left_ns = child->settle_ns - clock_boot_ns();
    child->empty = child->empty || is_group_gone(child);
    if (child->empty && (is_silent(child) || left_ns <= 0)) {
        feed(child, is_silent(child) ? JOB_QUIET : JOB_SETTLE_OVER);
        return;
    }

    /* output may stop being waited for, what lives may not: the next attempt must not begin beside
     * it */
    watch_streams(child);
    double left_s = left_ns > 0 ? (double)left_ns / (double)CLOCK_NS_PER_S : longest_wait_s;
    start_pause(child, child->empty || child->wait_s > left_s ? left_s : child->wait_s);
    child->wait_s = child->wait_s * 2 < longest_wait_s ? child->wait_s * 2 : longest_wait_s;
}

static void start_settle(struct child *child)
{
    child->settle_ns = clock_boot_ns() + SETTLE_MS * CLOCK_NS_PER_MS;
    child->wait_s = first_wait_s;
    settle(child);
}

static void report(struct child *child)
{
    size_t limit = (size_t)child->host->config->dead.output_tail;
    struct bytes *tails[] = {&child->attempt.stdout_tail, &child->attempt.stderr_tail};
    for (int i = 0; i < 2; i++) {
        struct child_stream *stream = &child->streams[i];
        struct line_context context;
        struct output_lines into;
        ev_io_stop(child->host->loop, &stream->watcher);
        output_finish(&stream->output, lines_of(stream, &context, &into));
        *tails[i] = output_take_tail(&stream->output, limit);
    }
    child_release(child);
}

/* The child may be gone afterwards. */
static void perform(struct child *child, unsigned actions)
{
    if (actions & JOB_SEND_TERM) {
        send_term(child);
    }
    if (actions & JOB_SEND_KILL) {
        group_signal(child->pid, SIGKILL);
    }
    if (actions & JOB_START_GRACE) {
        watch_streams(child);
        start_pause(child, (double)child->host->config->task.kill_grace_ms / 1000);
    }
    if (actions & JOB_KILL_GROUP) {
        kill_group(child);
    }
    if (actions & JOB_START_SETTLE) {
        start_settle(child);
        return;
    }
    if (actions & JOB_REPORT) {
        report(child);
        child->host->done(child->host, child);
    }
}

static void feed(struct child *child, enum job_event event)
{
    struct attempt *attempt = &child->attempt;
    attempt->ending.cause = job_cause(attempt->state, event, attempt->ending.cause);
    struct job_step step = job_next(attempt->state, event);
    attempt->state = step.state;
    perform(child, step.actions);
}

/* ---- timers ---- */

static void on_timeout(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    child_end(watcher->data, JOB_TIMED_OUT);
}

static void on_pause(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct child *child = watcher->data;
    if (child->attempt.state == JOB_SETTLING) {
        settle(child);
    } else if (child->attempt.state == JOB_RUNNING) {
        watch_streams(child);
    } else {
        child_end(child, JOB_GRACE_OVER);
    }
}

/* ---- from start to end ---- */

struct child *child_new(struct child_host *host, struct task *task, int64_t lease_deadline_ns)
{
    struct child *child = calloc(1, sizeof *child);
    if (!child) {
        return NULL;
    }
    child->host = host;
    child->report = -1;
    child->attempt = (struct attempt){
        .task = task,
        .state = JOB_CLAIMED,
        .ending = {.cause = CAUSE_EXIT,
                   .attempt = task->attempt,
                   .max_attempts = task->max_attempts},
        .started_wall_ms = clock_wall_ms(),
        .lease_deadline_ns = lease_deadline_ns,
    };
    ev_init(&child->timeout, on_timeout);
    ev_init(&child->pause, on_pause);
    child->timeout.data = child->pause.data = child;
    for (int i = 0; i < 2; i++) {
        child->streams[i].child = child;
        output_open(&child->streams[i].output, -1);
        ev_init(&child->streams[i].watcher, on_readable);
        child->streams[i].watcher.data = &child->streams[i];
    }
    return child;
}

/* Ends the attempt without a process. */
static void fail(struct child *child, enum cause cause)
{
    child->attempt.state = job_next(child->attempt.state, JOB_START_FAILED).state;
    child->attempt.ending.cause = cause;
}

void child_refuse(struct child *child, const char *reason)
{
    /* cut where it is too long */
    (void)snprintf(child->attempt.reason, sizeof child->attempt.reason, "%s", reason);
    fail(child, CAUSE_REFUSED);
}

int child_start(struct child *child)
{
    struct attempt *attempt = &child->attempt;
    const struct config *config = child->host->config;
    const struct task *task = attempt->task;
    int64_t timeout_ms = task->timeout_ms >= 0 ? task->timeout_ms : config->task.timeout_ms;
    struct environment_limits limits = {
        .max_attempts = task->max_attempts > 0 ? task->max_attempts : config->retry.max_attempts,
        .deadline_wall_ms = timeout_ms > 0 ? attempt->started_wall_ms + timeout_ms : 0,
    };
    struct started started;
    enum cause cause;
    child->started_ns = clock_boot_ns();
    if (start_task(&child->host->start, task, &limits, &started, &cause, attempt->reason,
                   sizeof attempt->reason) < 0) {
        fail(child, cause);
        return -1;
    }

    child->pid = started.pid;
    child->report = started.report;
    output_open(&child->streams[0].output, started.output);
    output_open(&child->streams[1].output, started.error);
    start_pause(child, (double)WATCH_MS / 1000);
    if (timeout_ms > 0) {
        ev_timer_set(&child->timeout, (double)timeout_ms / 1000, 0);
        ev_timer_start(child->host->loop, &child->timeout);
    }
    feed(child, JOB_STARTED);
    return 0;
}

void child_end(struct child *child, enum job_event event)
{
    siginfo_t exit = {0};
    if (waitid(P_PID, (id_t)child->pid, &exit, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        exit.si_pid == 0) {
        feed(child, event);
    }
}

/* A forked child that never came to execute was no execution of the task. */
static void judge_start(struct child *child)
{
    struct spawn_failure failure;
    if (child->report < 0 || spawn_report(child->report, &failure)) {
        return;
    }
    bool by_us = child->attempt.ending.cause == CAUSE_LEASE_LOST ||
                 child->attempt.ending.cause == CAUSE_SHUTDOWN;
    if (!by_us) {
        child->attempt.ending.cause = start_failure_cause(&failure);
        start_describe(child->host->start.recipe, &failure, child->attempt.reason,
                       sizeof child->attempt.reason);
    }
}

/* 126 and 127 are how a shell says that it cannot execute: with a program that the config gives,
 * and unless the config gives these codes a meaning, that is the host's fault. */
static void judge_program(struct child *child)
{
    const struct config *config = child->host->config;
    struct ending *ending = &child->attempt.ending;
    int code = ending->exit_code;
    if (ending->cause == CAUSE_EXIT && config->task.command && (code == 126 || code == 127) &&
        !config_codes_has(&config->retry.success, code) &&
        !config_codes_has(&config->retry.permanent, code)) {
        ending->cause = CAUSE_HOST;
        (void)snprintf(child->attempt.reason, sizeof child->attempt.reason,
                       "the configured command cannot be executed: exit %d", code); /* fits */
    }
}

void child_exited(struct child *child, const siginfo_t *exit)
{
    struct ending *ending = &child->attempt.ending;
    child->attempt.duration_us = (clock_boot_ns() - child->started_ns) / 1000;
    if (exit->si_code == CLD_EXITED) {
        ending->exit_code = exit->si_status;
    } else {
        ending->signal = exit->si_status;
        if (ending->cause == CAUSE_EXIT) {
            ending->cause = CAUSE_SIGNAL;
        }
    }
    judge_start(child);
    judge_program(child);

    struct ev_loop *loop = child->host->loop;
    ev_timer_stop(loop, &child->timeout);
    ev_timer_stop(loop, &child->pause);
    feed(child, JOB_EXITED);
}

void child_release(struct child *child)
{
    struct ev_loop *loop = child->host->loop;
    ev_timer_stop(loop, &child->timeout);
    ev_timer_stop(loop, &child->pause);
    for (int i = 0; i < 2; i++) {
        ev_io_stop(loop, &child->streams[i].watcher);
        output_free(&child->streams[i].output);
    }
    if (child->report >= 0) {
        close(child->report);
        child->report = -1;
    }
}

void attempt_free(struct attempt *attempt)
{
    if (!attempt) {
        return;
    }
    free((char *)attempt->stdout_tail.data);
    free((char *)attempt->stderr_tail.data);
    task_free(attempt->task);
    free(attempt); /* the first member of a child */
}
