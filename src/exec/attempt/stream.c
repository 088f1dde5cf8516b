#include "exec/attempt/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "exec/attempt/batch.h"

enum {
    LINES_READ = 4096, /* one read where each line becomes a record: a turn of the loop stays short
                          even if each of them is empty */
    EXIT_READS = 4,    /* reads of each stream at the exit, before the loop has its turn */
    LAST_READ = 128 * 1024, /* and of what is there when it is not waited for any longer */
    IGNORED_TOLD = 10,      /* lines of descriptor 3 that are no verdicts; more are only counted */
    CLOGGED_MS = 5,         /* until the log is offered again what it did not take */
    SHOWN_LINE = 80,        /* how much of such a line is shown */
};

static int kind_of(const struct stream *stream)
{
    return (int)(stream - stream->child->streams);
}

/* ---- lines ---- */

enum { WHO_FIELDS = 2 };

/* Whose lines they are: one task's, or those of a batch. number needs 24 bytes. */
static void describe_who(const struct child *child, struct log_field fields[WHO_FIELDS],
                         char *number)
{
    const struct attempt *attempt = &child->attempt;
    if (child->count > 1) {
        (void)snprintf(number, 24, "%zu", child->count); /* fits, as the other */
        fields[0] = LOG_TEXT("LEAT_BATCH_ID", attempt->batch);
        fields[1] = LOG_TEXT("LEAT_BATCH", number);
    } else {
        (void)snprintf(number, 24, "%" PRId64, attempt->task->attempt);
        fields[0] = LOG_TEXT("LEAT_TASK", attempt->task->tid);
        fields[1] = LOG_TEXT("LEAT_ATTEMPT", number);
    }
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
    char number[24];
    struct log_field fields[WHO_FIELDS + 3];
    size_t count = WHO_FIELDS;
    describe_who(stream->child, fields, number);
    fields[count++] = LOG_TEXT("LEAT_EVENT", event_of(stream->child));
    fields[count++] = LOG_TEXT("LEAT_STREAM", is_error ? "stderr" : "stdout");
    if (!ends) {
        fields[count++] = LOG_TEXT("LEAT_CUT", "1");
    }
    int priority = is_error ? LOG_NOTICE : LOG_INFO;
    if (stream->child->outlet.last) {
        log_bytes(priority, LOG_ID_TASK_OUTPUT, fields, count, data, size);
    } else if (!log_offer(priority, LOG_ID_TASK_OUTPUT, fields, count, data, size)) {
        return false;
    }
    stream->child->lines++;
    return true;
}

static void log_about(const struct child *child, int priority, const char *id, const char *event,
                      const char *what)
{
    char number[24];
    struct log_field fields[WHO_FIELDS + 1];
    describe_who(child, fields, number);
    fields[WHO_FIELDS] = LOG_TEXT("LEAT_EVENT", event);
    log_event(priority, id, fields, WHO_FIELDS + 1, "%s %s: %s",
              child->count > 1 ? "batch" : "task", child->attempt.task->tid, what);
}

/* ---- verdicts ---- */

static void ignore(struct child *child, const char *line, size_t size)
{
    struct buffer text = BUFFER_INIT;
    bool cut = size > SHOWN_LINE;
    if (child->ignored++ >= IGNORED_TOLD) {
        return;
    }
    if (!buffer_append_text(&text, "descriptor 3: ") &&
        !escape_append(&text, line, cut ? SHOWN_LINE : size) &&
        !buffer_append_text(&text, cut ? "...: ignored" : ": ignored") &&
        !buffer_append(&text, "", 1)) {
        log_about(child, LOG_WARNING, NULL, "ignored", text.data);
    }
    buffer_free(&text);
}

/* The last verdict on a task counts. Its reason is for people: escaped, and cut where it is long.
 */
static void set_verdict(struct attempt *attempt, const struct batch_verdict *verdict)
{
    struct buffer text = BUFFER_INIT;
    attempt->has_verdict = true;
    attempt->verdict = verdict->verdict;
    attempt->reason[0] = '\0';
    if (!escape_append(&text, verdict->reason.data, verdict->reason.size) && text.size > 0) {
        (void)snprintf(attempt->reason, sizeof attempt->reason, "%.*s", (int)text.size, text.data);
    }
    buffer_free(&text);
}

static bool take_verdict(void *context, const void *data, size_t size, bool ends)
{
    const struct stream *stream = context;
    struct child *child = stream->child;
    struct batch_verdict verdict;
    bool whole = ends && !child->within_line;
    bool first = !child->within_line;
    child->within_line = !ends;
    if (whole && batch_read(data, size, child->count, &verdict)) {
        set_verdict(child_attempt(child, verdict.index - 1), &verdict);
    } else if (first) {
        ignore(child, data, size);
    }
    return true;
}

/* ---- reading ---- */

/* Where the stream's lines go. Returns NULL where nobody wants them. */
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
    return child->outlet.to == CONFIG_OUTPUT_JOURNAL &&
                   log_wants(kind == STREAM_ERROR ? LOG_NOTICE : LOG_INFO)
               ? lines
               : NULL;
}

static size_t tail_of(const struct stream *stream)
{
    return kind_of(stream) == STREAM_VERDICTS
               ? 0
               : (size_t)stream->child->host->config->dead.output_tail;
}

/* To whoever follows the task; without data, only how much it is. What a process leaves is taken
 * whole, held or not. */
static void pass_on(struct stream *stream, const char *data, size_t size)
{
    int number = kind_of(stream) == STREAM_ERROR ? STDERR_FILENO : STDOUT_FILENO;
    struct child *child = stream->child;
    const struct child_host *host = child->host;
    if (size > 0 && child->live && !child->checking &&
        !host->follow.wrote(host->follow.context, &child->attempt, number, data, size)) {
        stream->held = child->attempt.state < JOB_SETTLING;
        if (stream->held) {
            fd_watch_stop(&stream->watch, host->loop);
        }
    }
}

/* Says once that files cannot be written, and once how much was lost when they can be again. */
static void keep_file(struct child *child, size_t size)
{
    struct child_host *host = child->host;
    size_t written;
    char what[128];
    int failed = outlet_write(&child->outlet, host->config, getenv("LOGS_DIRECTORY"),
                              child->attempt.task->tid, host->scratch, size, &written);
    host->files_lost += size - written;
    if (failed && !host->files_fail) {
        host->files_fail = true;
        (void)snprintf(what, sizeof what, "output cannot be written to its file: %s; it is lost",
                       strerror(errno)); /* cut where it is too long */
        log_about(child, LOG_ERR, LOG_ID_OUTPUT_LOST, "output-lost", what);
    } else if (!failed && host->files_fail) {
        (void)snprintf(what, sizeof what,
                       "output is written to files again; %" PRIu64 " bytes were lost",
                       host->files_lost); /* fits */
        log_about(child, LOG_NOTICE, LOG_ID_OUTPUT_LOST, "output-found", what);
        host->files_fail = false;
        host->files_lost = 0;
    }
}

/* The process has written more than it may. A check is never ended for that. */
static void go_over(struct child *child)
{
    bool kills = child->outlet.kills && !child->checking;
    char what[128];
    (void)snprintf(what, sizeof what, "it has written more than %" PRId64 " bytes: %s",
                   child->outlet.limit, kills ? "it is stopped" : "the rest is dropped"); /* fits */
    log_about(child, LOG_WARNING, LOG_ID_OUTPUT_LIMIT, "output-limit", what);
    if (kills && child->attempt.state == JOB_RUNNING) {
        child->stream_events->overflowed(child);
    }
}

/* Nothing is read any more until what was taken is paid for: the process waits. */
static void ration(struct child *child, double seconds)
{
    struct ev_loop *loop = child->host->loop;
    fd_watch_stop(&child->streams[STREAM_OUTPUT].watch, loop);
    fd_watch_stop(&child->streams[STREAM_ERROR].watch, loop);
    ev_now_update(loop);
    ev_timer_stop(loop, &child->ration);
    ev_timer_set(&child->ration, seconds, 0);
    ev_timer_start(loop, &child->ration);
}

/* Passes on lines of these bytes. What the log does not take is kept; without memory it is lost. */
static void offer(struct stream *stream, const struct output_lines *lines, const char *data,
                  size_t size)
{
    struct buffer *rest = &stream->output.rest;
    size_t done = output_cut(&stream->output, data, size, lines);
    if (done < size && buffer_append(rest, data + done, size - done)) {
        rest->failed = false;
    }
}

/* Offers again what was kept, and a last line without end. Returns true where nothing is left. */
static bool offer_rest(struct stream *stream, const struct output_lines *lines)
{
    struct buffer *rest = &stream->output.rest;
    if (rest->size > 0 && lines) {
        buffer_consume(rest, output_cut(&stream->output, rest->data, rest->size, lines));
    }
    if (rest->size == 0 || !lines) {
        buffer_free(rest);
    }
    return rest->size == 0 && (stream->output.fd >= 0 || output_end(&stream->output, lines));
}

static bool has_rest(const struct output *output)
{
    return output->rest.size > 0 || (output->fd < 0 && output->line.size > 0);
}

/* What was taken has cost that: the process waits until it is paid for and the log takes more. */
static void pace(struct child *child, size_t cost)
{
    double wait_s = outlet_spend(&child->outlet, cost);
    double clogged_s = (double)CLOGGED_MS / 1000;
    if (streams_are_clogged(child) && wait_s < clogged_s) {
        wait_s = clogged_s;
    }
    if (wait_s > 0) {
        ration(child, wait_s);
    }
}

/* The child may be gone afterwards. */
static void on_ration(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)events;
    struct child *child = watcher->data;
    child->lines = 0;
    for (int i = STREAM_OUTPUT; i <= STREAM_ERROR; i++) {
        struct output_lines into;
        (void)offer_rest(&child->streams[i], lines_of(&child->streams[i], &into)); /* see pace */
    }
    pace(child, child->lines * OUTLET_LINE_COST);
    streams_watch(child);
    child->stream_events->heard(child);
}

/* What the last read has brought of stdout or stderr. */
static void take(struct stream *stream, const struct output_lines *lines)
{
    struct child *child = stream->child;
    struct outlet *outlet = &child->outlet;
    bool was_over = outlet->over;
    size_t size = outlet_take(outlet, stream->output.got);
    child->lines = 0;
    if (size > 0) {
        if (lines) {
            offer(stream, lines, child->host->scratch, size);
        }
        if (outlet->to == CONFIG_OUTPUT_FILE) {
            keep_file(child, size);
        }
    }
    pass_on(stream, child->host->scratch, size);
    pass_on(stream, NULL, stream->output.got - size);
    if (lines || outlet->to == CONFIG_OUTPUT_FILE) {
        pace(child, size + child->lines * OUTLET_LINE_COST);
    }
    if (outlet->over && !was_over) {
        go_over(child);
    }
}

/* One read, unless what was read before is still to be taken. Returns true while there may be more
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

    /* the watcher goes before the descriptor does */
    int fd = stream->output.fd;
    bool more = output_read(&stream->output, host->scratch, size, tail_of(stream));
    if (stream->output.fd < 0 && fd >= 0) {
        fd_watch_stop(&stream->watch, host->loop);
        if (!offer_rest(stream, lines)) {
            pace(stream->child, 0);
        }
    }
    if (stream->output.got > 0 && lines && kind_of(stream) == STREAM_VERDICTS) {
        (void)output_cut(&stream->output, host->scratch, stream->output.got, lines); /* all */
    } else if (stream->output.got > 0) {
        take(stream, lines);
    }
    return more;
}

static void on_readable(void *context)
{
    struct stream *stream = context;
    read_some(stream);
    stream->child->stream_events->heard(stream->child);
}

void streams_drain(struct child *child)
{
    /* what it leaves is taken whole, and soon */
    child->outlet.rate = 0;
    ev_timer_stop(child->host->loop, &child->ration);
    for (int i = 0; i < STREAMS; i++) {
        for (int reads = 0; reads < EXIT_READS && read_some(&child->streams[i]); reads++) {
        }
    }
}

void streams_watch(struct child *child)
{
    for (int i = 0; i < STREAMS; i++) {
        struct stream *stream = &child->streams[i];
        stream->held = stream->held && child->attempt.state < JOB_SETTLING;
        bool waits = i != STREAM_VERDICTS && ev_is_active(&child->ration);
        if (stream->output.fd >= 0 && !stream->held && !waits) {
            fd_watch_start(&stream->watch, child->host->loop, stream->output.fd, EV_READ);
        }
    }
}

void streams_hear(struct child *child)
{
    bool any = false;
    for (int i = 0; i < STREAMS; i++) {
        any = any || child->streams[i].held;
        child->streams[i].held = false;
    }
    if (any) {
        streams_watch(child);
    }
}

bool streams_are_clogged(const struct child *child)
{
    return has_rest(&child->streams[STREAM_OUTPUT].output) ||
           has_rest(&child->streams[STREAM_ERROR].output);
}

bool streams_are_silent(const struct child *child)
{
    for (int i = 0; i < STREAMS; i++) {
        if (child->streams[i].output.fd >= 0 || has_rest(&child->streams[i].output)) {
            return false;
        }
    }
    return true;
}

/* ---- from beginning to end ---- */

void streams_init(struct child *child, const struct stream_events *events)
{
    child->stream_events = events;
    ev_init(&child->ration, on_ration);
    child->ration.data = child;
    child->outlet.file = -1;
    for (int i = 0; i < STREAMS; i++) {
        struct stream *stream = &child->streams[i];
        stream->child = child;
        output_open(&stream->output, -1);
        fd_watch_init(&stream->watch, on_readable, stream);
    }
}

/* What tasks that share a process have in common is told of those that the process said are dead.
 * Without memory they have none. */
static void share_tail(struct child *child, struct bytes tail, bool is_error)
{
    for (size_t i = 0; i < child->count; i++) {
        struct attempt *attempt = child_attempt(child, i);
        bool dead = attempt->has_verdict && attempt->verdict == VERDICT_DEAD;
        char *copy = dead && tail.size > 0 ? malloc(tail.size) : NULL;
        if (copy) {
            memcpy(copy, tail.data, tail.size);
            *(is_error ? &attempt->stderr_tail : &attempt->stdout_tail) =
                (struct bytes){copy, tail.size};
        }
    }
    free((char *)tail.data);
}

static void give_tail(struct child *child, struct stream *stream)
{
    bool is_error = kind_of(stream) == STREAM_ERROR;
    struct bytes tail = output_take_tail(&stream->output, tail_of(stream));
    if (child->count > 1) {
        share_tail(child, tail, is_error);
    } else {
        *(is_error ? &child->attempt.stderr_tail : &child->attempt.stdout_tail) = tail;
    }
}

void streams_finish(struct child *child)
{
    child->outlet.last = true;

    /* verdicts first: they say who gets the tails */
    for (int i = STREAMS - 1; i >= 0; i--) {
        struct stream *stream = &child->streams[i];
        struct output_lines into;
        fd_watch_stop(&stream->watch, child->host->loop);
        for (size_t size = 0; size < LAST_READ && read_some(stream); size += stream->output.got) {
        }
        output_finish(&stream->output, lines_of(stream, &into));
        if (i != STREAM_VERDICTS) {
            give_tail(child, stream);
        }
    }
    if (child->ignored > IGNORED_TOLD) {
        char what[64];
        (void)snprintf(what, sizeof what, "descriptor 3: %zu more lines ignored",
                       child->ignored - IGNORED_TOLD); /* fits */
        log_about(child, LOG_WARNING, NULL, "ignored", what);
    }
}

void streams_free(struct child *child)
{
    ev_timer_stop(child->host->loop, &child->ration);
    outlet_end(&child->outlet);
    for (int i = 0; i < STREAMS; i++) {
        fd_watch_stop(&child->streams[i].watch, child->host->loop);
        output_free(&child->streams[i].output);
    }
}
