/* Encodes log records for the journal, as lines and as JSON. */
#include "base/log/log_record.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/escape.h"

/* Appends NAME=value, or the length and the value if it has line breaks or NULs. */
static int append_field(struct buffer *buffer, const char *name, const void *data, size_t size)
{
    uint64_t length = htole64(size);

    (void)buffer_append_text(buffer, name); /* the last append returns any failure */
    if (size > 0 && (memchr(data, '\n', size) || memchr(data, '\0', size))) {
        (void)buffer_append(buffer, "\n", 1);
        (void)buffer_append(buffer, &length, sizeof length);
    } else {
        (void)buffer_append(buffer, "=", 1);
    }
    (void)buffer_append(buffer, data, size);
    return buffer_append(buffer, "\n", 1);
}

static int append_text_field(struct buffer *buffer, const char *name, const char *text)
{
    return append_field(buffer, name, text, strlen(text));
}

static int append_fields(struct buffer *buffer, const struct log_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (append_field(buffer, fields[i].name, fields[i].data, fields[i].size) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Appends the texts before and after, and the name in small letters between them. */
static int append_name(struct buffer *buffer, const char *before, const char *name,
                       const char *after)
{
    size_t size = strlen(name);

    /* the last append returns any failure */
    (void)buffer_append_text(buffer, before);
    if (buffer_reserve(buffer, size) == 0) {
        char *to = buffer->data + buffer->size;

        for (size_t i = 0; i < size; i++) {
            to[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
        }
        buffer->size += size;
    }
    return buffer_append_text(buffer, after);
}

/* Returns what follows LEAT_ in the name, or NULL. */
static const char *own_name(const char *name)
{
    static const char prefix[] = "LEAT_";

    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : NULL;
}

/* Appends ,"name":"value". */
static int append_member(struct buffer *buffer, const char *name, const void *data, size_t size)
{
    const char *own = own_name(name);

    /* the last append returns any failure */
    (void)append_name(buffer, ",\"", own ? own : name, "\":\"");
    (void)escape_append_json(buffer, data, size);
    return buffer_append_text(buffer, "\"");
}

static int append_members(struct buffer *buffer, const struct log_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (append_member(buffer, fields[i].name, fields[i].data, fields[i].size) != 0) {
            return -1;
        }
    }
    return 0;
}

int log_common_make(struct log_common *common, const struct log_field *fields, size_t count)
{
    if (append_fields(&common->journal, fields, count) != 0 ||
        append_members(&common->json, fields, count) != 0) {
        goto fail;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, "LEAT_QUEUE") == 0 &&
            escape_append(&common->queue, fields[i].data, fields[i].size) != 0) {
            goto fail;
        }
    }
    return 0;

fail:
    log_common_free(common);
    return -1;
}

void log_common_free(struct log_common *common)
{
    buffer_free(&common->journal);
    buffer_free(&common->json);
    buffer_free(&common->queue);
}

int log_record_journal(struct buffer *buffer, const struct log_common *common,
                       const struct log_record *record)
{
    /* the buffer remembers a failure, so the last append returns it */
    (void)buffer_printf(buffer, "PRIORITY=%d\n", record->priority);
    (void)append_text_field(buffer, "SYSLOG_IDENTIFIER", record->identifier);
    if (record->message_id) {
        (void)append_text_field(buffer, "MESSAGE_ID", record->message_id);
    }
    (void)buffer_append(buffer, common->journal.data, common->journal.size);
    (void)append_fields(buffer, record->fields, record->count);
    return append_field(buffer, "MESSAGE", record->message, record->size);
}

static const char *priority_name(int priority)
{
    static const char *const names[] = {
        "emergency", "alert", "critical", "error", "warning", "notice", "info", "debug",
    };
    size_t count = sizeof names / sizeof names[0];

    return priority >= 0 && (size_t)priority < count ? names[priority] : "debug";
}

/* Writes the last digits of a non-negative number. */
static void put_digits(char *text, int number, int width)
{
    for (int i = width - 1; i >= 0; i--, number /= 10) {
        text[i] = (char)('0' + number % 10);
    }
}

static int append_time(struct buffer *buffer)
{
    int64_t now_ms = clock_wall_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm utc;
    char text[] = "2026-11-21T10:00:00.123Z";

    if (!gmtime_r(&seconds, &utc)) {
        return buffer_append_text(buffer, "-");
    }
    put_digits(text, utc.tm_year + 1900, 4);
    put_digits(text + 5, utc.tm_mon + 1, 2);
    put_digits(text + 8, utc.tm_mday, 2);
    put_digits(text + 11, utc.tm_hour, 2);
    put_digits(text + 14, utc.tm_min, 2);
    put_digits(text + 17, utc.tm_sec, 2);
    put_digits(text + 20, (int)(now_ms % 1000), 3);
    return buffer_append(buffer, text, sizeof text - 1);
}

/* Whether lines leave the field out: it is the same in all lines, or the message says it in words.
 * The first letter decides nearly always. */
static bool is_hidden(const char *own)
{
    return (*own == 'Q' && strcmp(own, "QUEUE") == 0) ||
           (*own == 'E' && strcmp(own, "EVENT") == 0) || (*own == 'C' && strcmp(own, "CUT") == 0);
}

/* The name of the field in a line, or NULL. */
static const char *shown_name(const char *name)
{
    const char *own = own_name(name);

    return own && !is_hidden(own) ? own : NULL;
}

static bool needs_quotes(char character)
{
    return character == ' ' || character == '(' || character == ')' || character == '=' ||
           character == '"';
}

/* Appends a value, in quotes if it could be taken for several fields. */
static int append_value(struct buffer *buffer, const char *data, size_t size)
{
    size_t plain = 0;
    bool quoted = false;

    /* nearly all values need no quotes */
    while (plain < size && data[plain] > ' ' && data[plain] < 0x7f && !needs_quotes(data[plain])) {
        plain++;
    }
    if (plain == size) {
        return buffer_append(buffer, data, size);
    }

    for (size_t i = 0; i < size && !quoted; i++) {
        quoted = needs_quotes(data[i]);
    }
    if (!quoted) {
        return escape_append(buffer, data, size);
    }

    (void)buffer_append(buffer, "\"", 1); /* the last append returns any failure */
    for (const char *quote; size > 0 && (quote = memchr(data, '"', size));) {
        size_t length = (size_t)(quote - data);

        (void)escape_append(buffer, data, length);
        (void)buffer_append_text(buffer, "\\\"");
        data += length + 1;
        size -= length + 1;
    }
    (void)escape_append(buffer, data, size);
    return buffer_append(buffer, "\"", 1);
}

/* Appends " (task=17-0 attempt=2)". It is always last, so that no message can fake it. */
static int append_shown(struct buffer *buffer, const struct log_field *fields, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        const char *name = shown_name(fields[i].name);

        if (!name) {
            continue;
        }
        (void)append_name(buffer, any ? " " : " (", name, "="); /* the next returns any failure */
        if (append_value(buffer, fields[i].data, fields[i].size) != 0) {
            return -1;
        }
        any = true;
    }
    return any ? buffer_append(buffer, ")", 1) : 0;
}

static void append_prefix(struct buffer *buffer, const struct log_common *common,
                          const struct log_record *record)
{
    (void)append_time(buffer);
    (void)buffer_append_text(buffer, " ");
    (void)buffer_append_text(buffer, record->identifier);
    if (common->queue.size > 0) {
        (void)buffer_append(buffer, "[", 1);
        (void)buffer_append(buffer, common->queue.data, common->queue.size);
        (void)buffer_append(buffer, "]", 1);
    }
    (void)buffer_append_text(buffer, " ");
    (void)buffer_append_text(buffer, priority_name(record->priority));
    (void)buffer_append_text(buffer, ": ");
}

int log_record_line(struct buffer *buffer, const struct log_common *common,
                    const struct log_record *record)
{
    /* the buffer remembers a failure, so the last append returns it */
    if (record->identifier) {
        append_prefix(buffer, common, record);
    }
    (void)escape_append(buffer, record->message, record->size);
    (void)append_shown(buffer, record->fields, record->count);
    return buffer_append(buffer, "\n", 1);
}

int log_record_json(struct buffer *buffer, const struct log_common *common,
                    const struct log_record *record)
{
    /* the buffer remembers a failure, so the last append returns it */
    (void)buffer_append_text(buffer, "{\"time\":\"");
    (void)append_time(buffer);
    (void)buffer_printf(buffer, "\",\"level\":\"%s\"", priority_name(record->priority));
    if (record->identifier) {
        (void)append_member(buffer, "program", record->identifier, strlen(record->identifier));
    }
    (void)append_member(buffer, "message", record->message, record->size);
    if (record->message_id) {
        (void)append_member(buffer, "message_id", record->message_id, strlen(record->message_id));
    }
    (void)buffer_append(buffer, common->json.data, common->json.size);
    (void)append_members(buffer, record->fields, record->count);
    return buffer_append_text(buffer, "}\n");
}
