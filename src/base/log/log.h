/*
 * The log: native journal records where stderr is the journal, readable lines otherwise. Writing
 * never blocks. What the sink does not take at once is dropped, or given back to who offers it, if
 * it is task output; other records are kept (up to 256 KiB) and written first as soon as it takes
 * more. What is dropped is counted, and the next record that gets through is preceded by one that
 * says how many were lost. This sink is the program's only global.
 */
#ifndef LEAT_BASE_LOG_LOG_H
#define LEAT_BASE_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syslog.h> /* LOG_ERR … LOG_DEBUG */

#include "base/log/log_field.h"

enum log_target {
    LOG_TARGET_AUTO, /* the journal if $JOURNAL_STREAM names stderr's device and inode, else stderr
                      */
    LOG_TARGET_JOURNAL,
    LOG_TARGET_STDERR,
};

/* Opens the sink; may be called again to change it. identifier must outlive the log. Records of a
 * priority number above max_priority are not written. Returns 0, or -1 with errno where the
 * journal's socket cannot be opened (the log then goes to stderr). */
int log_open(enum log_target target, int max_priority, const char *identifier);

/* Fields that every record carries from now on (LEAT_QUEUE, …); copied. Returns 0 or -1 (no
 * memory). */
int log_set_common(const struct log_field *fields, size_t count);

/* Writes what is kept, waiting for at most 200 ms, and frees all. Records written later go to
 * stderr. */
void log_close(void);

/* Tries again to write what the sink did not take; for a timer that runs anyway. */
void log_flush(void);

/* True where records of that priority are written: to save the work of making one. */
bool log_wants(int priority);

/* A plain record. */
void log_text(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A record with fields. message_id is one of log_ids.h, or NULL. */
void log_event(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A record whose MESSAGE is bytes as they came from a task: on a terminal or in a file, control
 * characters and invalid UTF-8 are escaped; in the journal they stay bytes. */
void log_bytes(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const void *message, size_t size);

/* The same, but returns false where the sink takes nothing now: to be offered again in some
 * milliseconds. Only where it has taken nothing for two seconds the record is dropped. */
bool log_offer(int priority, const char *message_id, const struct log_field *fields, size_t count,
               const void *message, size_t size);

/* Records dropped since start. The log tells of them itself as soon as the sink takes more: nobody
 * needs this but who looks on from outside while it takes none, as the tests do. */
uint64_t log_dropped(void);

#endif
