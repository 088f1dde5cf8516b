/*
 * Hands tasks to a process that stays, and ends them by its reports.
 */
#include "exec/attempt/child.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "queue/batch.h"

enum {
    MUTE_MS = 1000, /* how long the process may still live if it has closed one of its pipes */
    LOOK_MS = 1000, /* between two looks at its memory */
    TEXT_SIZE = 256,
};

static void tell(struct child *child, enum resident_news news, const char *text)
{
    child->host->resident(child->host, child, news, text);
}

size_t resident_count(const struct child *child)
{
    return child->count - 1;
}

struct attempt *resident_only(const struct child *child)
{
    return resident_count(child) == 1 ? child->others[0] : NULL;
}

static bool is_running(const struct child *child)
{
    return child->attempt.state == JOB_RUNNING;
}

/* ---- creation ---- */

struct child *resident_new(struct child_host *host)
{
    struct task *task = calloc(1, sizeof *task);
    struct resident *resident = calloc(1, sizeof *resident);
    struct attempt **others = calloc((size_t)host->config->task.batch, sizeof *others);
    struct child *child = NULL;
    if (task && resident && others) {
        task->tid = task->token = "handler";
        task->timeout_ms = task->result_ttl_ms = -1;
        child = child_new(host, &(struct claimed_task){.task = task}, 1);
    }
    if (!child) {
        free(task);
        free(resident);
        free(others);
        return NULL;
    }
    child->others = others;
    child->resident = resident;
    resident->child = child;
    resident->input = -1;
    resident->format = host->config->task.batch_format;
    resident->most = (size_t)host->config->task.batch;
    /* cppcheck-suppress memleak ; the child's attempt has the task */
    return child;
}

void resident_free(struct resident *resident)
{
    if (resident) {
        buffer_free(&resident->unsent);
        free(resident);
    }
}

/* ---- the timer: the earliest of all that may become due ---- */

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return b_ns > 0 && (a_ns == 0 || b_ns < a_ns) ? b_ns : a_ns;
}

static int64_t after(int64_t from_ns, int64_t ms)
{
    return from_ns > 0 && ms > 0 ? from_ns + ms * CLOCK_NS_PER_MS : 0;
}

/* Returns when the process has had no task for long enough; 0: never. */
static int64_t idle_end_ns(const struct child *child)
{
    const struct resident *resident = child->resident;
    bool waits = resident->ready && !resident->closing && resident_count(child) == 0;
    return waits ? after(resident->free_ns, child->host->config->task.resident_idle_ms) : 0;
}

static int64_t age_end_ns(const struct child *child)
{
    const struct resident *resident = child->resident;
    bool ages = resident->ready && !resident->worn && !resident->closing;
    return ages ? after(child->started_ns, child->host->config->task.resident_age_ms) : 0;
}

static int64_t start_end_ns(const struct child *child)
{
    const struct config_task *config = &child->host->config->task;
    return child->resident->ready || child->resident->closing
               ? 0
               : after(child->started_ns, config->resident_start_timeout_ms);
}

static int64_t next_due_ns(const struct child *child)
{
    const struct resident *resident = child->resident;
    int64_t due_ns = earlier(start_end_ns(child), after(resident->mute_ns, MUTE_MS));
    due_ns = earlier(due_ns, idle_end_ns(child));
    due_ns = earlier(due_ns, age_end_ns(child));
    due_ns = earlier(due_ns, resident->end_ns);
    for (size_t i = 1; i < child->count; i++) {
        due_ns = earlier(due_ns, child->others[i - 1]->in_hand.end_ns);
    }
    return due_ns;
}

/* Starts the timer if it would fire too late. One that fires too early looks again, so a process
 * with short tasks seldom touches it. */
static void set_timer(struct child *child, int64_t due_ns)
{
    struct resident *resident = child->resident;
    if (due_ns > 0 && (resident->due_ns == 0 || due_ns < resident->due_ns)) {
        int64_t left_ns = due_ns - clock_boot_ns();
        resident->due_ns = due_ns;
        timer_start_ns(&child->timeout, left_ns > 0 ? left_ns : 0);
    }
}

static bool is_past(int64_t due_ns, int64_t now_ns)
{
    return due_ns > 0 && due_ns <= now_ns;
}

/* ---- trouble ---- */

/* Says once what is wrong with the process. */
static void note_trouble(struct child *child, const char *text)
{
    if (!child->resident->troubled) {
        child->resident->troubled = true;
        tell(child, RESIDENT_TROUBLE, text);
    }
}

static void give_up(struct child *child, const char *text)
{
    note_trouble(child, text);
    child_end(child, NULL, JOB_MUTE);
}

void resident_mute(struct child *child)
{
    if (is_running(child) && child->resident->end_ns == 0) {
        child->resident->mute_ns = clock_boot_ns();
        set_timer(child, next_due_ns(child));
    }
}

void resident_babbles(struct child *child)
{
    give_up(child, "writes other lines than reports on descriptor 3; ending it; write \"ready\" "
                   "once, then \"INDEX ok\" and the like, and all else to standard error");
}

/* ---- standard input ---- */

/* Closes the pipe, and remembers how much of it was read. */
static void close_input(struct child *child)
{
    struct resident *resident = child->resident;
    int unread = 0;
    if (resident->input < 0) {
        return;
    }
    if (ioctl(resident->input, FIONREAD, &unread) < 0 || unread < 0) {
        unread = 0;
    }
    resident->read = resident->written - (uint64_t)unread;
    fd_watch_stop(&resident->writable, child->host->loop);
    fd_watch_stop(&resident->unread, child->host->loop);
    descriptor_close(&resident->input);
}

/* Writes as much as the pipe takes, and the rest when it takes more. */
static void send_records(struct child *child)
{
    struct resident *resident = child->resident;
    size_t done = 0;
    while (resident->input >= 0 && done < resident->unsent.size) {
        ssize_t size =
            write(resident->input, resident->unsent.data + done, resident->unsent.size - done);
        if (size < 0 && errno == EAGAIN) {
            fd_watch_start(&resident->writable, child->host->loop, resident->input, EV_WRITE);
            break;
        }
        if (size < 0 && errno != EINTR) {
            close_input(child);
            resident->shut = true;
            resident_mute(child);
            return;
        }
        done += size > 0 ? (size_t)size : 0;
        resident->written += size > 0 ? (uint64_t)size : 0;
    }
    buffer_consume(&resident->unsent, done);
    if (resident->unsent.size == 0) {
        fd_watch_stop(&resident->writable, child->host->loop);
    }
}

/* Nobody can read the records any longer. */
static void on_unread(void *context)
{
    struct child *child = context;
    fd_watch_stop(&child->resident->unread, child->host->loop);
    child->resident->shut = true;
    resident_mute(child);
}

static void on_writable(void *context)
{
    send_records(context);
}

/* Lets the process read the end of the file, and gives it the grace period to end. */
static void send_end(struct child *child)
{
    struct resident *resident = child->resident;
    if (resident->end_ns == 0) {
        close_input(child);
        resident->end_ns =
            clock_boot_ns() + child->host->config->task.kill_grace_ms * CLOCK_NS_PER_MS;
        set_timer(child, resident->end_ns);
    }
}

void resident_close(struct child *child)
{
    child->resident->closing = true;
    if (resident_count(child) == 0 && is_running(child)) {
        send_end(child);
    }
}

void resident_begin(struct child *child, const struct started *started)
{
    struct resident *resident = child->resident;
    resident->input = started->input;
    child->streams.outlet.limit = 0; /* which is for tasks */
    fd_watch_init(&resident->writable, on_writable, child);
    fd_watch_init(&resident->unread, on_unread, child);
    fd_watch_start(&resident->unread, child->host->loop, resident->input, EV_READ);
    resident->has_cpu = clock_getcpuclockid(started->pid, &resident->cpu) == 0;
    set_timer(child, next_due_ns(child));
}

void resident_release(struct child *child)
{
    close_input(child);
}

/* ---- handing over ---- */

/* Returns the CPU time of the process, without that of its children; -1: not known. */
static int64_t cpu_ns(const struct resident *resident)
{
    struct timespec time;
    if (!resident->has_cpu || clock_gettime(resident->cpu, &time) < 0) {
        return -1;
    }
    return (int64_t)time.tv_sec * CLOCK_NS_PER_S + time.tv_nsec;
}

/* Appends the task's record to those that are to be sent. Returns 0, or -1 without memory. */
static int add_record(struct child *child, const struct task *task, int64_t timeout_ms)
{
    struct resident *resident = child->resident;
    const struct config_retry *retry = &child->host->config->retry;
    const struct batch_record record = {
        .number = resident->number + 1,
        .max_attempts = task->max_attempts > 0 ? task->max_attempts : retry->max_attempts,
        .deadline_wall_ms = timeout_ms > 0 ? clock_wall_ms() + timeout_ms : 0};
    size_t size = resident->unsent.size;
    if (batch_append(&resident->unsent, resident->format, task, &record)) {
        resident->unsent.size = size;
        resident->unsent.failed = false;
        return -1;
    }
    resident->number++;
    return 0;
}

/* The output from now on is the task's if it is the only one, otherwise the process's. */
static void begin_output(struct child *child, struct attempt *attempt)
{
    const struct child_host *host = child->host;
    struct outlet *outlet = &child->streams.outlet;
    const struct task *task = attempt ? attempt->task : NULL;
    int64_t credit = outlet->credit, counted_ns = outlet->counted_ns;
    enum config_output_to to = outlet->to;
    child->live = task && child_is_followed(host, task);
    child->streams.list[STREAM_OUTPUT].output.total = 0;
    child->streams.list[STREAM_ERROR].output.total = 0;
    outlet_end(outlet);
    outlet_begin(outlet, host->config, task, child->live, counted_ns);
    outlet->credit = credit < outlet->credit ? credit : outlet->credit;
    outlet->to = to; /* of the pipes that it was started with */
    if (resident_count(child) == 0) {
        outlet->limit = 0; /* which is for tasks */
    }
    if (child->live) {
        host->follow.began(host->follow.context, attempt);
    }
}

struct attempt *resident_take(struct child *child, const struct claimed_task *claimed)
{
    struct resident *resident = child->resident;
    const struct task *task = claimed->task;
    const struct config_task *config = &child->host->config->task;
    int64_t timeout_ms = task->timeout_ms >= 0 ? task->timeout_ms : config->timeout_ms;
    uint64_t at = resident->written + resident->unsent.size;

    /* what it has written before is not the task's, but may be more than it may write */
    (void)streams_part(child, true);
    struct attempt *attempt = is_running(child) ? calloc(1, sizeof *attempt) : NULL;
    if (!attempt || add_record(child, task, timeout_ms)) {
        free(attempt);
        return NULL;
    }

    attempt_init(attempt, claimed);
    int64_t now_ns = clock_boot_ns();
    attempt->in_hand = (struct in_hand){.number = resident->number,
                                        .at = at,
                                        .since_ns = now_ns,
                                        .end_ns = after(now_ns, timeout_ms),
                                        .cpu_ns = cpu_ns(resident),
                                        .beside = child->count > 1};
    attempt->child = child;
    attempt->state = job_next(attempt->state, JOB_STARTED).state;
    for (size_t i = 1; i < child->count; i++) {
        child->others[i - 1]->in_hand.beside = true;
    }
    child->others[child->count++ - 1] = attempt;
    begin_output(child, resident_only(child));

    /* the process can read the record from now on */
    child_hasten(child);
    task_drop_payload(attempt->task);
    send_records(child);
    set_timer(child, attempt->in_hand.end_ns);
    return attempt;
}

/* ---- reports ---- */

/* Returns the attempt with that number, or NULL. */
static struct attempt *find(const struct child *child, uint64_t number)
{
    for (size_t i = 1; i < child->count; i++) {
        if (child->others[i - 1]->in_hand.number == number) {
            return child->others[i - 1];
        }
    }
    return NULL;
}

static void take_out(struct child *child, const struct attempt *attempt)
{
    size_t at = 0;
    while (child->others[at] != attempt) {
        at++;
    }
    child->count--;
    memmove(&child->others[at], &child->others[at + 1],
            (child->count - 1 - at) * sizeof *child->others);
}

static void note_usage(const struct resident *resident, struct attempt *attempt)
{
    int64_t now_ns = cpu_ns(resident), from_ns = attempt->in_hand.cpu_ns;
    if (!attempt->in_hand.beside && now_ns >= 0 && from_ns >= 0) {
        attempt->usage.items[USAGE_CPU_US] = (now_ns - from_ns) / 1000;
    }
}

/* Returns the resident memory of the process in bytes; 0: not known. */
static int64_t memory_of(pid_t pid)
{
    char path[40], text[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : descriptor_read(fd, text, sizeof text - 1);
    descriptor_close(&fd);
    const char *second = size > 0 ? strchr(text, ' ') : NULL;
    return second ? strtoll(second, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

static bool is_too_large(struct child *child)
{
    struct resident *resident = child->resident;
    int64_t most = child->host->config->task.resident_memory, now_ns = clock_boot_ns();
    if (most == 0 || now_ns < resident->look_ns + LOOK_MS * CLOCK_NS_PER_MS) {
        return false;
    }
    resident->look_ns = now_ns;
    return memory_of(child->pid) > most;
}

/* Asks for a successor if it has done or used enough. */
static void look_at_wear(struct child *child)
{
    struct resident *resident = child->resident;
    const struct config_task *config = &child->host->config->task;
    bool enough = config->resident_tasks > 0 && resident->ended >= (uint64_t)config->resident_tasks;
    if (!resident->worn && !resident->closing && (enough || is_too_large(child))) {
        resident->worn = true;
        tell(child, RESIDENT_WORN, NULL);
    }
}

/* Ends a task that the process has reported. */
static void settle(struct child *child, struct attempt *attempt)
{
    struct resident *resident = child->resident;
    attempt->duration_us = (clock_boot_ns() - attempt->in_hand.since_ns) / 1000;
    note_usage(resident, attempt);
    streams_give_tails(child, attempt);
    judge_verdict(attempt);
    attempt->state = job_next(attempt->state, JOB_VERDICT).state;
    take_out(child, attempt);
    begin_output(child, NULL);
    child_renew(child);
    resident->ended++;
    if (resident_count(child) == 0) {
        resident->free_ns = clock_boot_ns();
        set_timer(child, idle_end_ns(child));
    }
    child->host->settled(child->host, child, attempt);
    if (resident->closing && resident_count(child) == 0) {
        send_end(child);
    } else {
        look_at_wear(child);
    }
}

static bool take_ready(struct child *child, const char *line, size_t size)
{
    static const char ready[] = "ready";
    struct resident *resident = child->resident;
    if (resident->ready || size != sizeof ready - 1 || memcmp(line, ready, size) != 0) {
        return false;
    }
    resident->ready = true;
    resident->free_ns = clock_boot_ns();
    if (is_running(child)) {
        set_timer(child, next_due_ns(child));
    }
    tell(child, RESIDENT_READY, NULL);
    return true;
}

bool resident_line(struct child *child, const char *line, size_t size, bool *known)
{
    struct batch_verdict verdict;
    struct attempt *attempt = NULL;
    *known = take_ready(child, line, size);
    if (*known) {
        return true;
    }
    if (batch_read(line, size, (size_t)child->resident->number, true, &verdict)) {
        attempt = find(child, verdict.index);
    }
    if (!attempt || attempt->has_verdict) {
        return true;
    }
    *known = true;

    /* what the process wrote before it is the task's */
    if (is_running(child) && !streams_part(child, false)) {
        return false;
    }
    if (ending_is_decided(&attempt->ending)) {
        return true;
    }
    streams_set_verdict(attempt, &verdict);
    if (is_running(child)) {
        settle(child, attempt);
    }
    return true;
}

/* ---- ends ---- */

/* Returns whether the process has read nothing of the task's record. */
static bool is_unread(const struct child *child, const struct attempt *attempt)
{
    const struct resident *resident = child->resident;
    uint64_t read = resident->read;
    int unread = 0;
    if (resident->input >= 0) {
        read = resident->written;
        if (ioctl(resident->input, FIONREAD, &unread) == 0 && unread > 0) {
            read -= (uint64_t)unread;
        }
    }
    return attempt->in_hand.at >= read;
}

void resident_judge(struct child *child, struct attempt *attempt)
{
    struct ending *ending = &attempt->ending;
    bool own = ending->cause == CAUSE_EXIT || ending->cause == CAUSE_SIGNAL ||
               ending->cause == CAUSE_KILLED || ending->cause == CAUSE_NO_VERDICT;
    attempt->duration_us = (clock_boot_ns() - attempt->in_hand.since_ns) / 1000;
    if ((own || ending->cause == CAUSE_TIMEOUT || ending->cause == CAUSE_OUTPUT_LIMIT) &&
        is_unread(child, attempt)) {
        ending->cause = CAUSE_BATCH;
        (void)snprintf(attempt->reason, sizeof attempt->reason,
                       "its resident process ended before it read the task");
    } else if (ending_lacked_memory(&child->host->config->retry, ending,
                                    attempt->usage.items[USAGE_OOM_KILLS])) {
        ending->cause = CAUSE_OOM;
    } else {
        judge_no_verdict(attempt);
    }
}

/* Ends the process for the first of its tasks whose time is over. Returns false if there is none.
 */
static bool end_late(struct child *child, int64_t now_ns)
{
    for (size_t i = 1; i < child->count; i++) {
        struct attempt *attempt = child->others[i - 1];
        if (is_past(attempt->in_hand.end_ns, now_ns)) {
            if (is_unread(child, attempt)) {
                note_trouble(child, "has not read a task within its timeout; ending it; read the "
                                    "next record after each report");
            }
            child_end(child, attempt, JOB_TIMED_OUT);
            return true;
        }
    }
    return false;
}

void resident_reload(struct child *child)
{
    if (is_running(child)) {
        set_timer(child, next_due_ns(child));
    }
}

void resident_due(struct child *child)
{
    struct resident *resident = child->resident;
    int64_t now_ns = clock_boot_ns();
    resident->due_ns = 0;

    /* reports that it wrote in time count, however late leatd looks */
    if (is_running(child)) {
        streams_read_reports(child);
    }
    if (!is_running(child)) {
        return;
    }
    if (is_past(start_end_ns(child), now_ns)) {
        note_trouble(child, "has not written \"ready\" on descriptor 3 within [task] "
                            "resident_start_timeout; ending it; write the line \"ready\" when it "
                            "can take tasks, as echo ready >&3 does");
        child_end(child, NULL, JOB_TIMED_OUT);
    } else if (is_past(after(resident->mute_ns, MUTE_MS), now_ns)) {
        give_up(child, resident->shut
                           ? "closed its standard input; ending it; read records until the end of "
                             "the file"
                           : "closed descriptor 3; ending it; keep it open, since results are "
                             "reported there");
    } else if (is_past(resident->end_ns, now_ns)) {
        note_trouble(child, "has not ended within [task] kill_grace after the end of its standard "
                            "input; ending it; exit at the end of the file");
        child_end(child, NULL, JOB_STOP);
    } else if (!end_late(child, now_ns)) {
        if (is_past(idle_end_ns(child), now_ns)) {
            tell(child, RESIDENT_IDLE, NULL);
        } else if (is_past(age_end_ns(child), now_ns)) {
            resident->worn = true;
            tell(child, RESIDENT_WORN, NULL);
        }
        set_timer(child, next_due_ns(child));
    }
}
