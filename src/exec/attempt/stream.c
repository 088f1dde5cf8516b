/*
 * Passes the output of a process on: lines to the log, verdicts to the attempts, bytes to files and
 * followers, at the rate and up to the limit of the outlet.
 */
#include "exec/attempt/child.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "queue/batch.h"

enum {
    LINES_READ = 4096,      /* bytes of one read if lines become records: even empty lines then keep
                               the turn of the loop short */
    EXIT_READS = 4,         /* reads of each stream at the exit, in one turn of the loop */
    LAST_READ = 128 * 1024, /* bytes of each stream that are read at the very end */
    IGNORED_TOLD = 10,      /* lines without a verdict that are logged; further ones are counted */
    BLOCKED_MS = 5,         /* until the log is offered again what it has refused */
    SHOWN_LINE = 80,        /* bytes of a line without a verdict that are logged */
    NONSENSE_MOST = 1000,   /* such lines, one after the other, that end a resident process */
};

static int kind_of(const struct stream *stream)
{
    return (int)(stream - stream->child->streams.list);
}

/* ---- lines ---- */

enum { WHO_FIELDS = 3 };

enum { NUMBER_SIZE = 24 };

/* Returns the attempt whose output the process writes; or NULL if it is the output of the process,
 * which has several tasks or, for now, none. */
static const struct attempt *writer_of(const struct child *child)
{
    if (child->resident) {
        return resident_only(child);
    }
    return child->count > 1 ? NULL : &child->attempt;
}

/* Sets the fields that name the task, the batch or the resident process. numbers has room for two.
 * Returns how many fields these are. */
static size_t describe_who(const struct child *child, struct log_field fields[WHO_FIELDS],
                           char *numbers)
{
    const struct attempt *attempt = writer_of(child);
    char *number = numbers + NUMBER_SIZE;
    if (attempt) {
        (void)snprintf(number, NUMBER_SIZE, "%" PRId64, attempt->task->attempt);
        fields[0] = LOG_TEXT("LEAT_TASK", attempt->task->tid);
        fields[1] = LOG_TEXT("LEAT_ATTEMPT", number);
        return 2 + trace_log_field(&attempt->task->trace, &fields[2]);
    }
    (void)snprintf(number, NUMBER_SIZE, "%zu",
                   child->resident ? resident_count(child) : child->count);
    fields[0] = LOG_TEXT("LEAT_BATCH_ID", child->attempt.batch);
    fields[1] = LOG_TEXT("LEAT_BATCH", number);
    if (child->resident) {
        (void)snprintf(numbers, NUMBER_SIZE, "%d", (int)child->pid);
        fields[0] = LOG_TEXT("LEAT_HANDLER", numbers);
    }
    return 2;
}

static const char *event_of(const struct child *child)
{
    if (child->attempt.task->end) {
        return "notify-output";
    }
    return child->checking ? "check-output" : "output";
}

static bool log_line(void *context, const void *data, size_t size, bool ends)
{
    const struct stream *stream = context;
    bool is_error = kind_of(stream) == STREAM_ERROR;
    char numbers[2 * NUMBER_SIZE];
    struct log_field fields[WHO_FIELDS + 3];
    size_t count = describe_who(stream->child, fields, numbers);
    fields[count++] = LOG_TEXT("LEAT_EVENT", event_of(stream->child));
    fields[count++] = LOG_TEXT("LEAT_STREAM", is_error ? "stderr" : "stdout");
    if (!ends) {
        fields[count++] = LOG_TEXT("LEAT_CUT", "1");
    }
    int priority = is_error ? LOG_NOTICE : LOG_INFO;
    if (stream->child->streams.outlet.last) {
        log_bytes(priority, LOG_ID_TASK_OUTPUT, fields, count, data, size);
    } else if (!log_offer(priority, LOG_ID_TASK_OUTPUT, fields, count, data, size)) {
        return false;
    }
    stream->child->streams.lines++;
    return true;
}

static void log_about(const struct child *child, int priority, const char *id, const char *event,
                      const char *what)
{
    char numbers[2 * NUMBER_SIZE];
    struct log_field fields[WHO_FIELDS + 1];
    size_t count = describe_who(child, fields, numbers);
    const struct attempt *attempt = writer_of(child);
    fields[count++] = LOG_TEXT("LEAT_EVENT", event);
    if (!attempt && child->resident) {
        log_event(priority, id, fields, count, "resident process %d: %s", (int)child->pid, what);
        return;
    }
    log_event(priority, id, fields, count, "%s %s: %s", attempt ? "task" : "batch",
              (attempt ? attempt : &child->attempt)->task->tid, what);
}

/* ---- verdicts ---- */

static void ignore(struct child *child, const char *line, size_t size)
{
    static const char expected[] =
        "; write \"INDEX ok\", \"INDEX exit CODE\", \"INDEX retry\" or \"INDEX dead\", once for "
        "each record";
    struct buffer text = BUFFER_INIT;
    bool cut = size > SHOWN_LINE;
    if (child->streams.ignored++ >= IGNORED_TOLD) {
        return;
    }
    if (!buffer_append_text(&text, "descriptor 3: ") &&
        !escape_append(&text, line, cut ? SHOWN_LINE : size) &&
        !buffer_append_text(&text, cut ? "...: ignored" : ": ignored") &&
        !buffer_append_text(&text, child->needs_verdict ? expected : "") &&
        !buffer_append(&text, "", 1)) {
        log_about(child, LOG_WARNING, NULL, "ignored", text.data);
    }
    buffer_free(&text);
}

/* The reason is escaped, and cut if it is long. */
void streams_set_verdict(struct attempt *attempt, const struct batch_verdict *verdict)
{
    struct buffer text = BUFFER_INIT;
    attempt->has_verdict = true;
    attempt->verdict = verdict->verdict;
    attempt->verdict_code = verdict->code;
    attempt->reason[0] = '\0';
    if (!escape_append(&text, verdict->reason.data, verdict->reason.size) && text.size > 0) {
        (void)snprintf(attempt->reason, sizeof attempt->reason, "%.*s", (int)text.size, text.data);
    }
    buffer_free(&text);
}

/* Takes a whole line. Returns false to have it again later. */
static bool take_report(struct child *child, const char *line, size_t size, bool *known)
{
    struct batch_verdict verdict;
    if (child->resident) {
        return resident_line(child, line, size, known);
    }
    *known = batch_read(line, size, child->count, child->needs_verdict, &verdict);
    struct attempt *attempt = *known ? child_attempt(child, verdict.index - 1) : NULL;
    if (attempt && !(child->needs_verdict && ending_is_decided(&attempt->ending))) {
        streams_set_verdict(attempt, &verdict);
    } else if (child->needs_verdict && !attempt) {
        *known = bytes_equal((struct bytes){line, size}, "ready");
    }
    return true;
}

static bool take_verdict(void *context, const void *data, size_t size, bool ends)
{
    const struct stream *stream = context;
    struct child *child = stream->child;
    bool whole = ends && !child->streams.within_line;
    bool first = !child->streams.within_line;
    bool known = false;
    if (whole && !take_report(child, data, size, &known)) {
        return false;
    }
    child->streams.within_line = !ends;
    if (known) {
        child->streams.nonsense = 0;
        return true;
    }
    if (child->resident && ++child->streams.nonsense == NONSENSE_MOST) {
        resident_babbles(child);
    }
    if (first) {
        ignore(child, data, size);
    }
    return true;
}

/* ---- reading ---- */

/* Returns who receives the stream's lines, or NULL if nobody does. */
static const struct output_lines *lines_of(struct stream *stream, struct output_lines *lines)
{
    const struct child *child = stream->child;
    int kind = kind_of(stream);
    if (kind == STREAM_VERDICTS) {
        *lines =
            (struct output_lines){.max = BATCH_LINE_MOST, .line = take_verdict, .context = stream};
        return lines;
    }
    *lines = (struct output_lines){
        .max = (size_t)child->host->config->output.max_line, .line = log_line, .context = stream};
    enum config_output_to to = child->streams.outlet.to;
    bool no_file = to == CONFIG_OUTPUT_FILE && child->resident && child->count == 1;
    return (to == CONFIG_OUTPUT_JOURNAL || no_file) &&
                   log_wants(kind == STREAM_ERROR ? LOG_NOTICE : LOG_INFO)
               ? lines
               : NULL;
}

/* Returns how much of the end of the stream is kept. What a resident process writes without a task
 * belongs to no dead letter. */
static size_t tail_of(const struct stream *stream)
{
    const struct child *child = stream->child;
    bool nobody = child->resident && resident_count(child) == 0;
    return kind_of(stream) == STREAM_VERDICTS || nobody
               ? 0
               : (size_t)child->host->config->dead.output_tail;
}

static struct attempt *follower_of(struct child *child)
{
    return child->resident ? child->others[0] : &child->attempt;
}

/* Passes bytes to the follower of the task; data is NULL for bytes that are dropped. After the
 * exit, reading is not paused. */
static void follow_output(struct stream *stream, const char *data, size_t size)
{
    int number = kind_of(stream) == STREAM_ERROR ? STDERR_FILENO : STDOUT_FILENO;
    struct child *child = stream->child;
    const struct child_host *host = child->host;
    if (size > 0 && child->live && !child->checking &&
        !host->follow.wrote(host->follow.context, follower_of(child), number, data, size)) {
        stream->paused = child->attempt.state < JOB_SETTLING;
        if (stream->paused) {
            fd_watch_stop(&stream->watch, host->loop);
        }
    }
}

/* Returns whether the file of that attempt stays open. For a resident process, the next write may
 * be another task's. */
static bool is_kept_open(const struct child *child, size_t index)
{
    return child->resident ? child->count == 2 : index == 0;
}

/* Writes to the file of each of the process's tasks. Only the first stays open, because a batch can
 * have more tasks than descriptors are left. Returns 0, or -1 with errno if any of them failed. */
static int write_files(struct child *child, size_t size)
{
    struct child_host *host = child->host;
    const char *logs = getenv("LOGS_DIRECTORY");
    int result = 0, error = 0;
    for (size_t i = child_first(child); i < child->count; i++) {
        const char *tid = child_attempt(child, i)->task->tid;
        size_t written;
        int failed = is_kept_open(child, i)
                         ? outlet_write(&child->streams.outlet, host->config, logs, tid,
                                        host->scratch, size, &written)
                         : outlet_copy(host->config, logs, tid, host->scratch, size, &written);
        error = failed ? errno : error;
        result |= failed;
        host->files_lost += size - written;
    }
    errno = error;
    return result;
}

/* Logs the first failure to write a file, and how much was lost when it works again. */
static void write_file(struct child *child, size_t size)
{
    struct child_host *host = child->host;
    char what[128];
    int failed = write_files(child, size);
    if (failed && !host->files_fail) {
        host->files_fail = true;
        (void)snprintf(what, sizeof what, "cannot write its output to a file: %s; output is lost",
                       strerror(errno));
        log_about(child, LOG_ERR, LOG_ID_OUTPUT_LOST, "output-lost", what);
    } else if (!failed && host->files_fail) {
        (void)snprintf(what, sizeof what,
                       "output is written to files again; %" PRIu64 " bytes were lost",
                       host->files_lost);
        log_about(child, LOG_NOTICE, LOG_ID_OUTPUT_LOST, "output-found", what);
        host->files_fail = false;
        host->files_lost = 0;
    }
}

/* Handles output beyond the limit. A check is never stopped for that. */
static void exceed_limit(struct child *child)
{
    bool kills = child->streams.outlet.kills && !child->checking;
    char what[128];
    (void)snprintf(what, sizeof what, "wrote more than %" PRId64 " bytes; %s",
                   child->streams.outlet.limit, kills ? "stopping it" : "dropping the rest");
    log_about(child, LOG_WARNING, LOG_ID_OUTPUT_LIMIT, "output-limit", what);
    if (kills && child->attempt.state == JOB_RUNNING) {
        child_end(child, NULL, JOB_OVERFLOWED);
    }
}

static bool has_reports_of_many(const struct stream *stream)
{
    return kind_of(stream) == STREAM_VERDICTS && stream->child->resident;
}

static bool has_rest(const struct output *output)
{
    return output->rest.size > 0 || (output->fd < 0 && output->line.size > 0);
}

/* Reads nothing for a while, so that the process blocks when its pipe is full. Reports that wait
 * for output to be logged wait, too. */
static void throttle(struct child *child, double seconds)
{
    struct ev_loop *loop = child->host->loop;
    fd_watch_stop(&child->streams.list[STREAM_OUTPUT].watch, loop);
    fd_watch_stop(&child->streams.list[STREAM_ERROR].watch, loop);
    if (has_rest(&child->streams.list[STREAM_VERDICTS].output)) {
        fd_watch_stop(&child->streams.list[STREAM_VERDICTS].watch, loop);
    }
    timer_start_s(&child->streams.throttle, seconds);
}

/* Passes on the lines of these bytes. What the log refuses is kept; without memory it is lost. */
static void offer(struct stream *stream, const struct output_lines *lines, const char *data,
                  size_t size)
{
    struct buffer *rest = &stream->output.rest;
    size_t done = output_cut(&stream->output, data, size, lines);
    if (done < size && buffer_append(rest, data + done, size - done)) {
        rest->failed = false;
    }
}

/* Offers what was kept again, and a last line without a newline. Returns true if nothing is left.
 */
static bool offer_rest(struct stream *stream, const struct output_lines *lines)
{
    struct buffer *rest = &stream->output.rest;
    if (rest->size > 0 && lines) {
        buffer_consume(rest, output_cut(&stream->output, rest->data, rest->size, lines));
    }
    if (!lines || (rest->size == 0 && !has_reports_of_many(stream))) {
        buffer_free(rest);
    }
    return rest->size == 0 && (stream->output.fd >= 0 || output_end(&stream->output, lines));
}

/* Stops reading until the rate allows more, and until the log has accepted what was read. */
static void pace(struct child *child, size_t cost)
{
    double wait_s = outlet_spend(&child->streams.outlet, cost);
    double blocked_s = (double)BLOCKED_MS / 1000;
    if (streams_are_blocked(child) && wait_s < blocked_s) {
        wait_s = blocked_s;
    }
    if (wait_s > 0) {
        throttle(child, wait_s);
    }
}

/* Goes on reading. The child may be gone afterwards. */
static void on_throttle_over(void *context)
{
    struct child *child = context;
    child->streams.lines = 0;
    for (int i = 0; i < STREAMS; i++) { /* reports come last */
        struct output_lines into;
        (void)offer_rest(&child->streams.list[i],
                         lines_of(&child->streams.list[i], &into)); /* pace waits for the rest */
    }
    pace(child, child->streams.lines * OUTLET_LINE_COST);
    streams_watch(child);
    child_was_read(child);
}

/* Handles the bytes of stdout or stderr that were just read. */
static void take(struct stream *stream, const struct output_lines *lines)
{
    struct child *child = stream->child;
    struct outlet *outlet = &child->streams.outlet;
    bool was_over = outlet->over;
    size_t size = outlet_take(outlet, stream->output.got);
    child->streams.lines = 0;
    if (size > 0) {
        if (lines) {
            offer(stream, lines, child->host->scratch, size);
        }
        if (outlet->to == CONFIG_OUTPUT_FILE) {
            write_file(child, size);
        }
    }
    follow_output(stream, child->host->scratch, size);
    follow_output(stream, NULL, stream->output.got - size);
    if (lines || outlet->to == CONFIG_OUTPUT_FILE) {
        pace(child, size + child->streams.lines * OUTLET_LINE_COST);
    }
    if (outlet->over && !was_over) {
        exceed_limit(child);
    }
}

/* Handles the bytes of descriptor 3 that were just read. A report has the output before it read,
 * into the same memory, so the bytes move first. */
static void take_reports(struct stream *stream, const struct output_lines *lines)
{
    const char *data = stream->child->host->scratch;
    if (!stream->child->resident) {
        (void)output_cut(&stream->output, data, stream->output.got, lines);
    } else {
        (void)buffer_append(&stream->output.rest, data, stream->output.got); /* is reserved */
        (void)offer_rest(stream, lines); /* streams_part has it offered again */
    }
}

/* Reserves memory for what is read next and for a line that is not whole yet: without it, a report
 * would be lost, and its task would run again. Returns whether there is enough. */
static bool reserve_reports(struct output *output)
{
    output->rest.failed = output->line.failed = false;
    return !buffer_reserve(&output->rest, LINES_READ) && !buffer_reserve(&output->line, LINES_READ);
}

/* Reads once, unless the log has not accepted earlier output yet. Returns true if there may be more
 * at once. */
static bool read_some(struct stream *stream)
{
    const struct child_host *host = stream->child->host;
    struct output_lines into;
    const struct output_lines *lines = lines_of(stream, &into);
    size_t size = lines && host->scratch_size > LINES_READ ? LINES_READ : host->scratch_size;
    if (!offer_rest(stream, lines)) {
        pace(stream->child, 0);
        return false;
    }
    if (has_reports_of_many(stream) && !reserve_reports(&stream->output)) {
        fd_watch_stop(&stream->watch, host->loop);
        throttle(stream->child, (double)BLOCKED_MS / 1000);
        return false;
    }

    /* the watcher has to stop before its number can be another descriptor */
    int fd = stream->output.fd;
    bool more = output_read(&stream->output, host->scratch, size, tail_of(stream));
    if (stream->output.fd < 0 && fd >= 0) {
        fd_watch_stop(&stream->watch, host->loop);
        if (!offer_rest(stream, lines)) {
            pace(stream->child, 0);
        }
        if (has_reports_of_many(stream)) {
            resident_mute(stream->child);
        }
    }
    if (stream->output.got > 0 && kind_of(stream) == STREAM_VERDICTS) {
        take_reports(stream, lines);
    } else if (stream->output.got > 0) {
        take(stream, lines);
    }
    return more;
}

static void on_readable(void *context)
{
    struct stream *stream = context;
    read_some(stream);
    child_was_read(stream->child);
}

void streams_drain(struct child *child)
{
    /* what a process has left in its pipes is read at once */
    child->streams.outlet.rate = 0;
    timer_stop(&child->streams.throttle);
    for (int i = 0; i < STREAMS; i++) {
        for (int reads = 0; reads < EXIT_READS && read_some(&child->streams.list[i]); reads++) {
        }
    }
}

void streams_read_reports(struct child *child)
{
    struct stream *stream = &child->streams.list[STREAM_VERDICTS];
    for (int reads = 0; reads < EXIT_READS && read_some(stream); reads++) {
    }
}

void streams_watch(struct child *child)
{
    for (int i = 0; i < STREAMS; i++) {
        struct stream *stream = &child->streams.list[i];
        stream->paused = stream->paused && child->attempt.state < JOB_SETTLING;
        bool waits = (i != STREAM_VERDICTS || has_rest(&stream->output)) &&
                     timer_runs(&child->streams.throttle);
        if (stream->output.fd >= 0 && !stream->paused && !waits) {
            fd_watch_start(&stream->watch, child->host->loop, stream->output.fd, EV_READ);
        }
    }
}

void child_resume(struct child *child)
{
    bool any = false;
    for (int i = 0; i < STREAMS; i++) {
        any = any || child->streams.list[i].paused;
        child->streams.list[i].paused = false;
    }
    if (any) {
        streams_watch(child);
    }
}

bool child_follow(struct child *child, const struct attempt *attempt,
                  struct attempt_written written[2])
{
    bool alone = child->resident ? resident_only(child) == attempt && !attempt->in_hand.beside
                                 : child->count == 1;
    child->live = child->live || (alone && child->host->follow.wrote);
    for (int i = 0; i < 2; i++) {
        const struct output *output = &child->streams.list[STREAM_OUTPUT + i].output;
        written[i] = (struct attempt_written){output->total, buffer_bytes(&output->tail)};
    }
    return alone && child->live && !child->checking;
}

void child_unfollow(struct child *child)
{
    child->live = false;
}

bool streams_are_blocked(const struct child *child)
{
    return has_rest(&child->streams.list[STREAM_OUTPUT].output) ||
           has_rest(&child->streams.list[STREAM_ERROR].output);
}

bool streams_are_done(const struct child *child)
{
    for (int i = 0; i < STREAMS; i++) {
        if (child->streams.list[i].output.fd >= 0 || has_rest(&child->streams.list[i].output)) {
            return false;
        }
    }
    return true;
}

/* ---- start and end ---- */

void streams_init(struct child *child)
{
    timer_init(&child->streams.throttle, child->host->loop, on_throttle_over, child);
    child->streams.outlet.file = -1;
    for (int i = 0; i < STREAMS; i++) {
        struct stream *stream = &child->streams.list[i];
        stream->child = child;
        output_open(&stream->output, -1);
        fd_watch_init(&stream->watch, on_readable, stream);
    }
}

void streams_open(struct child *child, const struct started *started)
{
    output_open(&child->streams.list[STREAM_OUTPUT].output, started->output);
    output_open(&child->streams.list[STREAM_ERROR].output, started->error);
    output_open(&child->streams.list[STREAM_VERDICTS].output, started->verdicts);
}

static void copy_tail(struct attempt *attempt, struct bytes tail, bool is_error)
{
    char *copy = tail.size > 0 ? malloc(tail.size) : NULL;
    if (copy) {
        memcpy(copy, tail.data, tail.size);
        *(is_error ? &attempt->stderr_tail : &attempt->stdout_tail) =
            (struct bytes){copy, tail.size};
    }
}

/* Gives the tail of a shared process to those of its tasks that it has reported dead. Without
 * memory they have none. */
static void share_tail(struct child *child, struct bytes tail, bool is_error)
{
    for (size_t i = 0; i < child->count; i++) {
        struct attempt *attempt = child_attempt(child, i);
        if (attempt->has_verdict && attempt->verdict == VERDICT_DEAD) {
            copy_tail(attempt, tail, is_error);
        }
    }
    free((char *)tail.data);
}

static void give_tail(struct child *child, struct stream *stream)
{
    bool is_error = kind_of(stream) == STREAM_ERROR;
    struct bytes tail = output_take_tail(&stream->output, tail_of(stream));
    struct attempt *only = child->resident ? resident_only(child) : &child->attempt;
    if (child->count > 1 && !(only && child->resident)) {
        share_tail(child, tail, is_error);
    } else if (only) {
        *(is_error ? &only->stderr_tail : &only->stdout_tail) = tail;
    } else {
        free((char *)tail.data);
    }
}

void streams_give_tails(struct child *child, struct attempt *attempt)
{
    for (int i = STREAM_OUTPUT; i <= STREAM_ERROR; i++) {
        struct stream *stream = &child->streams.list[i];
        if (resident_only(child)) {
            give_tail(child, stream);
        } else if (attempt->verdict == VERDICT_DEAD) {
            copy_tail(attempt, buffer_bytes(&stream->output.tail), i == STREAM_ERROR);
        }
    }
}

/* ---- between two tasks of a resident process ---- */

/* Reads what is in the pipe now, also if the output is too fast or its follower too slow. */
static void read_all(struct stream *stream)
{
    int left = 0;
    if (stream->output.fd < 0 || ioctl(stream->output.fd, FIONREAD, &left) < 0) {
        return;
    }
    while (left > 0 && read_some(stream) && stream->output.got > 0) {
        left -= (int)stream->output.got;
    }
}

bool streams_part(struct child *child, bool last)
{
    bool done = true;
    child->streams.outlet.last = last;
    for (int i = STREAM_OUTPUT; i <= STREAM_ERROR; i++) {
        struct stream *stream = &child->streams.list[i];
        struct output_lines into;
        const struct output_lines *lines = lines_of(stream, &into);
        read_all(stream);
        done = offer_rest(stream, lines) && output_end(&stream->output, lines) && done;
        if (stream->paused && stream->output.fd >= 0) {
            stream->paused = false;
            streams_watch(child);
        }
    }
    child->streams.outlet.last = false;
    if (!done) {
        throttle(child, (double)BLOCKED_MS / 1000);
    }
    return done;
}

void streams_finish(struct child *child)
{
    child->streams.outlet.last = true;

    /* verdicts come first, since they decide who gets the tails */
    for (int i = STREAMS - 1; i >= 0; i--) {
        struct stream *stream = &child->streams.list[i];
        struct output_lines into;
        fd_watch_stop(&stream->watch, child->host->loop);
        for (size_t size = 0; size < LAST_READ && read_some(stream); size += stream->output.got) {
        }
        output_finish(&stream->output, lines_of(stream, &into));
        if (i != STREAM_VERDICTS) {
            give_tail(child, stream);
        }
    }
    if (child->streams.ignored > IGNORED_TOLD) {
        char what[64];
        (void)snprintf(what, sizeof what, "descriptor 3: %zu more lines ignored",
                       child->streams.ignored - IGNORED_TOLD);
        log_about(child, LOG_WARNING, NULL, "ignored", what);
    }
}

void streams_free(struct child *child)
{
    timer_stop(&child->streams.throttle);
    outlet_end(&child->streams.outlet);
    for (int i = 0; i < STREAMS; i++) {
        fd_watch_stop(&child->streams.list[i].watch, child->host->loop);
        output_free(&child->streams.list[i].output);
    }
}
