/*
 * Encodes a log record in the journal's native protocol, as a line for people, or as a line of
 * JSON. Only log.c uses this.
 */
#ifndef LEAT_BASE_LOG_LOG_RECORD_H
#define LEAT_BASE_LOG_LOG_RECORD_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/log/log_field.h"

/* The fields that every record has. */
struct log_common {
    struct buffer journal; /* encoded */
    struct buffer json;    /* encoded, each after a comma */
    struct buffer queue;   /* value of LEAT_QUEUE, for lines */
};

struct log_record {
    int priority;
    const char *identifier; /* NULL: a line has no prefix */
    const char *message_id; /* or NULL */
    const struct log_field *fields;
    size_t count;
    const void *message;
    size_t size;
};

/* Fills *common, which must be empty. Returns 0, or -1 if memory ran out; *common is then empty. */
int log_common_make(struct log_common *common, const struct log_field *fields, size_t count);
void log_common_free(struct log_common *common);

/* Each appends the record to the buffer. Returns 0, or -1 if memory ran out. */
int log_record_journal(struct buffer *buffer, const struct log_common *common,
                       const struct log_record *record);
int log_record_line(struct buffer *buffer, const struct log_common *common,
                    const struct log_record *record);

/* An object with the members time, level, program and message, and the fields: their names are
 * those of the journal in small letters, without LEAT_. All values are strings. */
int log_record_json(struct buffer *buffer, const struct log_common *common,
                    const struct log_record *record);

#endif
