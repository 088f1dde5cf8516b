/* The log: formats records, and counts those that are dropped. */
#include "base/log/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log/log_ids.h"
#include "base/log/log_record.h"
#include "base/log/log_sink.h"

enum {
    CLOSE_PATIENCE_MS = 200,
    STUCK_MS = 2000, /* longest wait for a sink that takes nothing */
};

/* The program's only global. */
static struct {
    struct log_sink sink;
    struct log_common common;
    int max_priority;
    const char *identifier;
    bool json;            /* lines are objects */
    struct buffer text;   /* MESSAGE of the current record */
    struct buffer record; /* the current record, encoded */
    bool in_burst;
    struct buffer burst; /* lines of a burst; at most PIPE_BUF bytes, or one line */
    size_t burst_count;
    uint64_t dropped;
    uint64_t reported;  /* how many of these a record has reported */
    int64_t refused_ns; /* since when the sink refuses offered records; 0: it takes them */
} logger = {
    .sink = LOG_SINK_INIT,
    .max_priority = LOG_INFO,
    .identifier = "leat",
};

/* True if stderr is the journal's stream, by the device and inode that systemd names. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat status;
    char own[64]; /* two decimal numbers fit */

    if (!stream || fstat(STDERR_FILENO, &status) != 0) {
        return false;
    }
    (void)snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(stream, own) == 0;
}

int log_open(enum log_target target, int max_priority, const char *identifier)
{
    int error;

    logger.dropped += log_sink_close(&logger.sink, 0);
    logger.max_priority = max_priority;
    logger.identifier = identifier;
    logger.json = target == LOG_TARGET_JSON;
    if (target == LOG_TARGET_STDERR || target == LOG_TARGET_JSON ||
        (target == LOG_TARGET_AUTO && !stderr_is_journal())) {
        log_sink_open_stderr(&logger.sink);
        return 0;
    }
    if (log_sink_open_journal(&logger.sink) == 0) {
        return 0;
    }
    error = errno;
    log_sink_open_stderr(&logger.sink);
    errno = error;
    return -1;
}

int log_set_common(const struct log_field *fields, size_t count)
{
    struct log_common common = {0};

    if (log_common_make(&common, fields, count) != 0) {
        return -1;
    }
    log_common_free(&logger.common);
    logger.common = common;
    return 0;
}

void log_close(void)
{
    log_burst_end();
    logger.dropped += log_sink_close(&logger.sink, CLOSE_PATIENCE_MS);
    log_common_free(&logger.common);
    buffer_free(&logger.text);
    buffer_free(&logger.record);
    buffer_free(&logger.burst);
}

bool log_wants(int priority)
{
    return priority <= logger.max_priority;
}

uint64_t log_dropped(void)
{
    return logger.dropped;
}

static int encode(const struct log_record *record)
{
    buffer_clear(&logger.record);
    if (logger.sink.kind == LOG_SINK_JOURNAL) {
        return log_record_journal(&logger.record, &logger.common, record);
    }
    return logger.json ? log_record_json(&logger.record, &logger.common, record)
                       : log_record_line(&logger.record, &logger.common, record);
}

static void write_burst(void)
{
    if (logger.burst_count == 0) {
        return;
    }
    enum log_sink_result result =
        log_sink_write(&logger.sink, &logger.burst, logger.burst_count, true);
    if (result == LOG_SINK_TAKEN) {
        logger.refused_ns = 0;
    } else if (result == LOG_SINK_LOST) {
        logger.dropped += logger.burst_count;
    }
    buffer_clear(&logger.burst);
    logger.burst_count = 0;
}

/* A pipe takes this many bytes as a whole, so other programs' lines do not come between. Returns
 * false if memory ran out. */
static bool add_to_burst(const struct log_record *record)
{
    if (encode(record) != 0) {
        return false;
    }
    if (logger.burst.size + logger.record.size > PIPE_BUF) {
        write_burst();
    }
    if (buffer_append(&logger.burst, logger.record.data, logger.record.size) != 0) {
        logger.burst.failed = false;
        return false;
    }
    logger.burst_count++;
    return true;
}

void log_burst_begin(void)
{
    logger.in_burst = logger.sink.kind == LOG_SINK_FILE;
}

void log_burst_end(void)
{
    int error = errno;

    write_burst();
    logger.in_burst = false;
    errno = error;
}

/* Encodes the record and writes it to the sink, truncated until it fits. Returns false if it was
 * lost. */
static bool write_record(const struct log_record *record, bool keep)
{
    struct log_record shorter = *record;
    enum log_sink_result result = LOG_SINK_TOO_LONG;

    if (logger.in_burst && keep) {
        return add_to_burst(record);
    }
    write_burst(); /* keep the order */
    while (result == LOG_SINK_TOO_LONG) {
        if (encode(&shorter) != 0) {
            return false;
        }
        result = log_sink_write(&logger.sink, &logger.record, 1, keep);

        /* half of the message is better than none */
        if (result == LOG_SINK_TOO_LONG && shorter.size == 0) {
            return false;
        }
        shorter.size /= 2;
    }
    if (result == LOG_SINK_TAKEN) {
        logger.refused_ns = 0;
    }
    return result != LOG_SINK_LOST;
}

/* Writes the kept records, then the number of dropped ones. Returns false if the sink takes
 * nothing. */
static bool catch_up(void)
{
    char text[64];
    size_t lost = 0, kept = logger.sink.kept.size;
    uint64_t total;
    bool flushed;

    flushed = log_sink_flush(&logger.sink, &lost);
    logger.dropped += lost;
    if (logger.sink.kept.size < kept) {
        logger.refused_ns = 0;
    }
    if (!flushed) {
        return false;
    }
    if (logger.dropped == logger.reported) {
        return true;
    }

    total = logger.dropped;
    int length = snprintf(text, sizeof text, "%llu log records were dropped",
                          (unsigned long long)(total - logger.reported));
    struct log_record record = {
        .priority = LOG_WARNING,
        .identifier = logger.identifier,
        .message_id = LOG_ID_LOG_DROPPED,
        .message = text,
        .size = length > 0 ? (size_t)length : 0,
    };
    if (!write_record(&record, false)) {
        return false;
    }
    logger.reported = total;
    return true;
}

void log_flush(void)
{
    int error = errno;

    (void)catch_up(); /* a later call tries again */
    errno = error;
}

/* Returns false if the sink takes nothing now. */
static bool emit(int priority, const char *message_id, const struct log_field *fields, size_t count,
                 const void *message, size_t size)
{
    /* a task's flood of output must not displace the program's own records */
    bool keep = !message_id || strcmp(message_id, LOG_ID_TASK_OUTPUT) != 0;
    struct log_record record = {
        .priority = priority,
        .identifier = logger.identifier,
        .message_id = message_id,
        .fields = fields,
        .count = count,
        .message = message,
        .size = size,
    };

    return (catch_up() || keep) && write_record(&record, keep);
}

static bool is_stuck(void)
{
    int64_t now_ns = clock_boot_ns();

    if (logger.refused_ns == 0) {
        logger.refused_ns = now_ns;
    }
    return now_ns - logger.refused_ns >= STUCK_MS * CLOCK_NS_PER_MS;
}

__attribute__((format(printf, 5, 0))) static void emit_format(int priority, const char *message_id,
                                                              const struct log_field *fields,
                                                              size_t count, const char *format,
                                                              va_list arguments)
{
    buffer_clear(&logger.text);
    if (buffer_vprintf(&logger.text, format, arguments) != 0 ||
        !emit(priority, message_id, fields, count, logger.text.data, logger.text.size)) {
        logger.dropped++;
    }
}

void log_text(int priority, const char *format, ...)
{
    int error = errno;
    va_list arguments;

    if (!log_wants(priority)) {
        return;
    }
    va_start(arguments, format);
    emit_format(priority, NULL, NULL, 0, format, arguments);
    va_end(arguments);
    errno = error;
}

void log_event(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const char *format, ...)
{
    int error = errno;
    va_list arguments;

    if (!log_wants(priority)) {
        return;
    }
    va_start(arguments, format);
    emit_format(priority, message_id, fields, count, format, arguments);
    va_end(arguments);
    errno = error;
}

void log_bytes(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const void *message, size_t size)
{
    int error = errno;

    if (log_wants(priority) && !emit(priority, message_id, fields, count, message, size)) {
        logger.dropped++;
    }
    errno = error;
}

void log_lines(int priority, const char *message_id, const struct buffer *lines)
{
    for (size_t at = 0; at < lines->size;) {
        const char *line = lines->data + at;
        const char *end = memchr(line, '\n', lines->size - at);
        size_t size = end ? (size_t)(end - line) : lines->size - at;

        log_event(priority, message_id, NULL, 0, "%.*s", (int)size, line);
        at += size + 1;
    }
}

bool log_offer(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const void *message, size_t size)
{
    int error = errno;
    bool taken = !log_wants(priority) || emit(priority, message_id, fields, count, message, size);

    if (!taken && is_stuck()) {
        logger.dropped++;
        taken = true;
    }
    errno = error;
    return taken;
}
