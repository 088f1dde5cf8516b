/*
 * The log: native journal records if stderr is the journal, readable lines or lines of JSON
 * otherwise. Writing never blocks.
 *
 * If the sink does not take a record of task output at once, the record is dropped, or returned to
 * the caller of log_offer. Other records are kept (up to 256 KiB) and written first as soon as the
 * sink takes more. Dropped records are counted; the next record that gets through is preceded by
 * one with their number.
 *
 * The log is the program's only global.
 */
#ifndef LEAT_BASE_LOG_LOG_H
#define LEAT_BASE_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syslog.h> /* LOG_ERR … LOG_DEBUG */

#include "base/buffer.h"
#include "base/log/log_field.h"

enum log_target {
    LOG_TARGET_AUTO, /* the journal if $JOURNAL_STREAM names the device and inode of stderr,
                        otherwise stderr */
    LOG_TARGET_JOURNAL,
    LOG_TARGET_STDERR,
    LOG_TARGET_JSON, /* stderr, an object in each line */
};

/* Opens the sink; a second call changes it. identifier must outlive the log; if
 * it is NULL, a line on stderr is the message alone. Records with a
 * priority number above max_priority are not written. Returns 0, or -1 with errno if the journal's
 * socket cannot be opened; the log then goes to stderr. */
int log_open(enum log_target target, int max_priority, const char *identifier);

/* Sets the fields of all following records (LEAT_QUEUE, …), which are copied. Returns 0, or -1 if
 * memory ran out. */
int log_set_common(const struct log_field *fields, size_t count);

/* Writes the kept records, waiting for at most 200 ms, and frees the memory. Later records go to
 * stderr. */
void log_close(void);

/* Tries again to write the kept records. Call it from a timer that runs anyway. */
void log_flush(void);

/* True if records of that priority are written; saves the work of making one that is not. */
bool log_wants(int priority);

/* Writes a record without fields. */
void log_text(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a record with fields. message_id is from log_ids.h, or NULL. */
void log_event(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Writes a record for each line. */
void log_lines(int priority, const char *message_id, const struct buffer *lines);

/* Writes a record whose MESSAGE is bytes from a task. In the journal they do not change; in lines,
 * control characters and invalid UTF-8 are escaped. */
void log_bytes(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const void *message, size_t size);

/* The same, but returns false if the sink takes nothing now; offer the record again after some
 * milliseconds. It is dropped only if the sink has taken nothing for two seconds. */
bool log_offer(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const void *message, size_t size);

/* Around many records in a row: lines for stderr are collected and written some at a time. Calls do
 * not nest. */
void log_burst_begin(void);
void log_burst_end(void);

/* The number of records dropped since the start, for tests. The log itself reports it as soon as
 * the sink takes more. */
uint64_t log_dropped(void);

#endif
