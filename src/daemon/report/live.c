/*
 * Sends the output of running tasks to Redis: queues it per task, sends it in turns, and blocks
 * tasks that write too fast.
 */
#include "daemon/report/live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "base/timer.h"
#include "daemon/report/followed.h"
#include "queue/result_streams.h"
#include "redis/error.h"

enum {
    TICK_MS = 10,                /* between two writes */
    TICK_COST = 64 * 1024,       /* bytes in each write: some megabytes per second */
    IN_FLIGHT_MOST = 256 * 1024, /* bytes in flight: no renewal waits behind more */
    TASK_MOST = 128 * 1024,      /* bytes queued for one task; above, its process is blocked */
    ALL_MOST = 1024 * 1024,      /* bytes queued for all tasks */
    DROP_MOST =
        4 * 1024 * 1024, /* the same with what pipes hold at the end; above, output is lost */
    STALL_MS = 2000,     /* the longest that a process is blocked while Redis takes nothing */
    KEEP_RUNNING_MS = 3600 * 1000, /* how long Redis keeps the stream after each entry */
    KEEP_ENDED_MS = 600 * 1000,    /* how long after an attempt's last entry */
    ENTRY_COST = 2048,             /* of an entry beside its bytes: memory here and in Redis */
};

#define CHUNK_SIZE ((size_t)8 * 1024) /* bytes of output in one chunk */

struct chunk {
    TAILQ_ENTRY(chunk) link;
    struct queue_output output; /* all but the data */
    struct buffer data;
    char how[48];
};

/* Chunks in order; the list owns them. */
TAILQ_HEAD(live_chunks, chunk);

/* Freed when the attempt has ended and all its output was answered. */
struct live_task {
    struct live *live;
    TAILQ_ENTRY(live_task) link;
    struct attempt *attempt; /* NULL: it has ended */
    char *tid;
    int64_t number, fence; /* of the attempt */
    int64_t offset, dropped;
    int64_t until_ns; /* somebody follows it until then; INT64_MAX: it asks for live output */
    int64_t sent[2];  /* bytes of stdout and stderr that were kept or dropped */
    bool silent;      /* nobody follows it now */
    struct live_chunks queued, in_flight;
    size_t bytes; /* the cost of `queued` */
    bool blocked; /* its process is not read */
};

struct live {
    struct worker_context *worker;
    struct runner *runner;
    TAILQ_HEAD(, live_task) tasks; /* the first is the next to send */
    size_t queued;                 /* chunks of all tasks that are not sent */
    size_t bytes;                  /* the cost of all chunks, sent or not */
    size_t in_flight;              /* the cost of those that are sent */
    size_t ended, blocked;         /* numbers of such tasks */
    int64_t progress_ns;           /* when Redis last took a chunk, or the first one was queued */
    int64_t ticked_ns;
    struct followed followed;
    bool refused;       /* Redis refused a chunk in this session, and the log says so */
    bool halted;        /* the next session sends again what is in flight */
    struct timer tick;  /* the next write */
    struct timer stall; /* runs while processes are blocked */
};

/* ---- chunks ---- */

/* Returns the cost of keeping and sending the chunk: its bytes, and a fixed overhead. */
static size_t chunk_cost(const struct chunk *chunk)
{
    return ENTRY_COST + chunk->data.size;
}

static void free_chunk(struct chunk *chunk)
{
    buffer_free(&chunk->data);
    free(chunk);
}

static void free_chunks(struct live_chunks *chunks)
{
    for (struct chunk *chunk; (chunk = TAILQ_FIRST(chunks));) {
        TAILQ_REMOVE(chunks, chunk, link);
        free_chunk(chunk);
    }
}

/* ---- tasks ---- */

static void free_task(struct live_task *task)
{
    TAILQ_REMOVE(&task->live->tasks, task, link);
    free_chunks(&task->queued);
    free_chunks(&task->in_flight);
    free(task->tid);
    free(task);
}

static void free_if_done(struct live_task *task)
{
    if (!task->attempt && TAILQ_EMPTY(&task->queued) && TAILQ_EMPTY(&task->in_flight)) {
        task->live->ended--;
        free_task(task);
    }
}

/* Returns NULL without memory: the attempt then has no live output. */
static struct live_task *add_task(struct live *live, struct attempt *attempt)
{
    struct live_task *task = calloc(1, sizeof *task);
    char *tid = strdup(attempt->task->tid);
    if (!task || !tid) {
        free(task);
        free(tid);
        return NULL;
    }
    task->live = live;
    task->attempt = attempt;
    task->tid = tid;
    task->number = attempt->task->attempt;
    task->fence = attempt->task->fence;
    task->until_ns = attempt->task->live ? INT64_MAX : followed_until(&live->followed, tid);
    TAILQ_INIT(&task->queued);
    TAILQ_INIT(&task->in_flight);
    TAILQ_INSERT_TAIL(&live->tasks, task, link);
    attempt->owner = task;
    return task;
}

static void unblock(struct live_task *task)
{
    if (task->blocked) {
        task->blocked = false;
        task->live->blocked--;
        runner_resume(task->live->runner, task->attempt);
    }
}

static bool is_full(const struct live_task *task)
{
    return task->bytes >= TASK_MOST || task->live->bytes >= ALL_MOST;
}

static void unblock_some(struct live *live)
{
    for (struct live_task *task = TAILQ_FIRST(&live->tasks); live->blocked > 0 && task;
         task = TAILQ_NEXT(task, link)) {
        if (!is_full(task)) {
            unblock(task);
        }
    }
}

/* ---- sending ---- */

static void start_tick(struct live *live)
{
    if (live->queued == 0 || live->in_flight >= IN_FLIGHT_MOST || timer_runs(&live->tick) ||
        !session_is_up(live->worker->session)) {
        return;
    }
    int64_t left_ns = live->ticked_ns + TICK_MS * CLOCK_NS_PER_MS - clock_boot_ns();
    timer_start_ns(&live->tick, left_ns);
}

/* Whether the next session can send the chunk again: after a failover, or without the functions. */
static bool is_for_next_session(enum redis_error kind)
{
    return kind == REDIS_ERROR_ROLE || kind == REDIS_ERROR_NO_LIBRARY || kind == REDIS_ERROR_LATER;
}

/* Replies to one task's chunks come in order. A refused chunk is lost and leaves a gap. */
static void on_sent(void *context, const struct redisReply *reply)
{
    struct live_task *task = context;
    struct live *live = task->live;
    const char *error = NULL;
    if (!reply || live->halted || !session_is_up(live->worker->session)) {
        return; /* live_down follows */
    }
    bool refused = queue_output_read(reply, &error) != 0;
    enum redis_error kind = refused ? redis_error_classify(error, strlen(error)) : REDIS_ERROR_NONE;
    if (is_for_next_session(kind)) {
        live->halted = true; /* a later reply is not that of the first chunk in flight */
        session_recover(live->worker->session, kind, error);
        return;
    }
    struct chunk *chunk = TAILQ_FIRST(&task->in_flight);
    TAILQ_REMOVE(&task->in_flight, chunk, link);
    bool was_full = live->bytes >= ALL_MOST;
    live->in_flight -= chunk_cost(chunk);
    live->bytes -= chunk_cost(chunk);
    live->progress_ns = clock_boot_ns();
    if (refused && !live->refused) {
        char why[512];
        redis_error_explain(error, strlen(error), why, sizeof why);
        live->refused = true;
        log_text(LOG_WARNING, "task %s: live output lost: %s", task->tid, why);
    }
    free_chunk(chunk);
    free_if_done(task);
    if (was_full && live->bytes < ALL_MOST) {
        unblock_some(live); /* no tick follows if nothing is left to send */
    }
    start_tick(live);
}

/* Returns 0, or −1 if nothing can be sent now. */
static int send_first(struct live_task *task)
{
    struct live *live = task->live;
    struct chunk *chunk = TAILQ_FIRST(&task->queued);
    chunk->output.data = (struct bytes){chunk->data.data, chunk->data.size};
    bool brief = chunk->output.verdict || task->until_ns != INT64_MAX;
    queue_output(&live->worker->command, live->worker->queue, &chunk->output,
                 brief ? KEEP_ENDED_MS : KEEP_RUNNING_MS);
    if (session_send(live->worker->session, on_sent, task)) {
        return -1;
    }
    TAILQ_REMOVE(&task->queued, chunk, link);
    TAILQ_INSERT_TAIL(&task->in_flight, chunk, link);
    task->bytes -= chunk_cost(chunk);
    live->in_flight += chunk_cost(chunk);
    live->queued--;
    return 0;
}

/* Sends one chunk of each task in turn, until the tick's share is sent. */
static void send_some(struct live *live)
{
    for (size_t sent = 0;
         live->queued > 0 && sent < TICK_COST && live->in_flight < IN_FLIGHT_MOST;) {
        struct live_task *task = TAILQ_FIRST(&live->tasks);
        TAILQ_REMOVE(&live->tasks, task, link);
        TAILQ_INSERT_TAIL(&live->tasks, task, link);
        if (!TAILQ_EMPTY(&task->queued)) {
            sent += chunk_cost(TAILQ_FIRST(&task->queued));
            if (send_first(task)) {
                return;
            }
        }
    }
}

static void on_tick(void *context)
{
    struct live *live = context;
    live->ticked_ns = clock_boot_ns();
    send_some(live);
    unblock_some(live);
    start_tick(live);
}

void live_flush(struct live *live)
{
    for (struct live_task *task = TAILQ_FIRST(&live->tasks);
         live->ended > 0 && task && session_is_up(live->worker->session);
         task = TAILQ_NEXT(task, link)) {
        while (!task->attempt && !TAILQ_EMPTY(&task->queued) && send_first(task) == 0) {
        }
    }
    start_tick(live);
}

void live_down(struct live *live)
{
    timer_stop(&live->tick);
    live->in_flight = 0;
    live->refused = false;
    live->halted = false;
    struct live_task *task;
    TAILQ_FOREACH(task, &live->tasks, link) {
        const struct chunk *chunk;
        TAILQ_FOREACH(chunk, &task->in_flight, link) {
            task->bytes += chunk_cost(chunk);
            live->queued++;
        }
        TAILQ_CONCAT(&task->in_flight, &task->queued, link);
        TAILQ_CONCAT(&task->queued, &task->in_flight, link);
    }
}

/* ---- output ---- */

/* Appends a chunk; returns NULL without memory. */
static struct chunk *add_chunk(struct live_task *task)
{
    struct live *live = task->live;
    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk) {
        return NULL;
    }
    chunk->output = (struct queue_output){.tid = task->tid,
                                          .attempt = task->number,
                                          .fence = task->fence,
                                          .offset = task->offset,
                                          .dropped = task->dropped};
    task->dropped = 0;
    if (live->bytes == 0) {
        live->progress_ns = clock_boot_ns();
    }
    TAILQ_INSERT_TAIL(&task->queued, chunk, link);
    task->bytes += chunk_cost(chunk);
    live->bytes += chunk_cost(chunk);
    live->queued++;
    start_tick(live);
    return chunk;
}

static void drop(struct live_task *task, size_t size)
{
    task->offset += (int64_t)size;
    task->dropped += (int64_t)size;
}

/* Returns the chunk that takes more of this output, or NULL without memory. */
static struct chunk *chunk_for(struct live_task *task, int number)
{
    struct chunk *last = TAILQ_LAST(&task->queued, live_chunks);
    if (last && last->output.number == number && last->data.size < CHUNK_SIZE &&
        task->dropped == 0) {
        return last;
    }
    last = add_chunk(task);
    if (last) {
        last->output.number = number;
    }
    return last;
}

static void keep(struct live_task *task, int number, const char *data, size_t size)
{
    while (size > 0) {
        struct chunk *chunk = chunk_for(task, number);
        size_t room = chunk ? CHUNK_SIZE - chunk->data.size : 0;
        size_t taken = size < room ? size : room;
        if (!chunk || buffer_append(&chunk->data, data, taken)) {
            drop(task, size);
            return;
        }
        task->bytes += taken;
        task->live->bytes += taken;
        task->offset += (int64_t)taken;
        data += taken;
        size -= taken;
    }
}

static bool is_stalled(const struct live *live)
{
    return live->bytes > 0 && clock_boot_ns() - live->progress_ns >= STALL_MS * CLOCK_NS_PER_MS;
}

static void start_stall(struct live *live)
{
    if (!timer_runs(&live->stall)) {
        timer_start_ms(&live->stall, STALL_MS);
    }
}

/* Redis takes nothing: unblocks all processes; what they write is dropped. */
static void on_stall(void *context)
{
    struct live *live = context;
    for (struct live_task *task = TAILQ_FIRST(&live->tasks); is_stalled(live) && task;
         task = TAILQ_NEXT(task, link)) {
        unblock(task);
    }
    if (live->blocked > 0) {
        start_stall(live);
    }
}

/* Stops passing on output that nobody follows any longer. */
static bool is_over(struct live_task *task)
{
    if (!task->silent && task->until_ns != INT64_MAX && clock_boot_ns() >= task->until_ns) {
        task->silent = true;
        runner_unfollow(task->live->runner, task->attempt);
    }
    return task->silent;
}

static bool on_output(void *context, struct attempt *attempt, int number, const void *data,
                      size_t size)
{
    struct live *live = context;
    struct live_task *task = attempt->owner;
    if (!task || is_over(task)) {
        return true;
    }
    task->sent[number - 1] += (int64_t)size;
    bool stalled = is_stalled(live);
    if (!data || live->bytes + size > DROP_MOST || (stalled && is_full(task))) {
        drop(task, size);
    } else {
        keep(task, number, data, size);
    }
    if (stalled || !is_full(task)) {
        return true;
    }
    live->blocked += !task->blocked;
    task->blocked = true;
    start_stall(live);
    return false;
}

static void add_start(struct live_task *task)
{
    struct chunk *chunk = add_chunk(task);
    if (chunk) {
        chunk->output.worker = task->live->worker->consumer;
    }
}

static void on_started(void *context, struct attempt *attempt)
{
    struct live_task *task = add_task(context, attempt);
    if (task) {
        add_start(task);
    }
}

/* ---- following tasks that do not ask for live output ---- */

static bool is_wanted(void *context, const struct task *task)
{
    const struct live *live = context;
    return clock_boot_ns() < followed_until(&live->followed, task->tid);
}

/* Keeps what the attempt has written while nobody followed it, as far as the runner has it. Bytes
 * of stdout come before those of stderr: in which order they were written is not known. */
static void catch_up(struct live_task *task, const struct attempt_written written[2])
{
    size_t most = task->live->bytes < ALL_MOST ? TASK_MOST : 0, shown[2];
    for (int i = 0; i < 2; i++) {
        size_t missing = (size_t)(written[i].total - task->sent[i]);
        shown[i] = missing < written[i].tail.size ? missing : written[i].tail.size;
        shown[i] = shown[i] < most ? shown[i] : most;
        drop(task, missing - shown[i]);
        task->sent[i] = written[i].total;
    }
    add_start(task);
    for (int i = 0; i < 2; i++) {
        const struct bytes *tail = &written[i].tail;
        if (shown[i] > 0) {
            keep(task, i + 1, tail->data + tail->size - shown[i], shown[i]);
        }
    }
}

static void follow_attempt(struct live *live, struct attempt *attempt, int64_t until_ns)
{
    struct live_task *task = attempt->owner;
    struct attempt_written written[2];
    if (task && !task->silent) {
        task->until_ns = task->until_ns > until_ns ? task->until_ns : until_ns;
        return;
    }
    if (!runner_follow(live->runner, attempt, written)) {
        return;
    }
    task = task ? task : add_task(live, attempt);
    if (!task) {
        runner_unfollow(live->runner, attempt);
        return;
    }
    task->silent = false;
    task->until_ns = until_ns;
    catch_up(task, written);
}

void live_follow(struct live *live, const char *tid, int64_t for_ms)
{
    int64_t until_ns = clock_boot_ns() + for_ms * CLOCK_NS_PER_MS;
    followed_add(&live->followed, tid, until_ns);
    for (struct attempt *attempt = runner_first(live->runner); attempt;
         attempt = LIST_NEXT(attempt, link)) {
        if (strcmp(attempt->task->tid, tid) == 0) {
            follow_attempt(live, attempt, until_ns);
        }
    }
}

void live_ended(struct live *live, struct attempt *attempt, const struct outcome *outcome)
{
    struct live_task *task = attempt->owner;
    if (!task) {
        return;
    }
    attempt->owner = NULL;
    task->attempt = NULL;
    live->blocked -= task->blocked;
    task->blocked = false;
    live->ended++;
    struct chunk *chunk = add_chunk(task);
    if (chunk) {
        ending_describe(&attempt->ending, chunk->how, sizeof chunk->how);
        chunk->output.verdict = verdict_name(outcome->verdict);
        chunk->output.how = chunk->how;
        chunk->output.delay_ms = outcome->verdict == VERDICT_RETRY ? outcome->delay_ms : 0;
    }
    free_if_done(task);
}

/* ---- creation ---- */

struct live *live_new(struct worker_context *worker, struct runner *runner)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live) {
        return NULL;
    }
    const struct attempt_follow follow = {
        .wanted = is_wanted, .began = on_started, .wrote = on_output, .context = live};
    live->worker = worker;
    live->runner = runner;
    TAILQ_INIT(&live->tasks);
    timer_init(&live->tick, worker->loop, on_tick, live);
    timer_init(&live->stall, worker->loop, on_stall, live);
    runner_set_follow(runner, &follow);
    return live;
}

void live_free(struct live *live)
{
    if (!live) {
        return;
    }
    timer_stop(&live->tick);
    timer_stop(&live->stall);
    while (!TAILQ_EMPTY(&live->tasks)) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that the list shrinks */
        free_task(TAILQ_FIRST(&live->tasks));
    }
    free(live);
}
