/*
 * The reasons of an explanation: their texts and values.
 */
#include "view/reasons.h"

#include <stdarg.h>

#include <hiredis/hiredis.h>

#include "view/moment.h"
#include "view/reply_fields.h"

#define LONG_NAME 200 /* bytes of a name in a text */

struct explain_reason *reasons_add(struct explanation *explanation, const char *name, bool blocks,
                                   const char *format, ...)
{
    struct explain_reason *reason = &explanation->reasons[explanation->count];
    va_list args;

    explanation->count += explanation->count < EXPLAIN_REASONS;
    buffer_free(&reason->text); /* of the last one that exceeded the list */
    *reason = (struct explain_reason){.name = name, .blocks = blocks};
    va_start(args, format);
    /* a failed append marks the buffer */
    (void)buffer_vprintf(&reason->text, format, args);
    va_end(args);
    return reason;
}

void reasons_printf(struct explain_reason *reason, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    /* a failed append marks the buffer */
    (void)buffer_vprintf(&reason->text, format, args);
    va_end(args);
}

void reasons_bytes(struct explain_reason *reason, struct bytes bytes)
{
    bool is_long = bytes.size > LONG_NAME;

    /* a failed append marks the buffer */
    (void)buffer_append(&reason->text, bytes.data, is_long ? LONG_NAME : bytes.size);
    (void)buffer_append_text(&reason->text, is_long ? "..." : "");
}

void reasons_time(struct explain_reason *reason, int64_t unix_ms, int64_t now_ms)
{
    char relative[MOMENT_SIZE], local[MOMENT_SIZE];

    moment_relative(unix_ms, now_ms, relative, sizeof relative);
    moment_local(unix_ms, local, sizeof local);
    reasons_printf(reason, "%s (%s)", relative, local);
}

void reasons_span(struct explain_reason *reason, int64_t ms)
{
    char span[MOMENT_SIZE];

    moment_span(ms, span, sizeof span);
    reasons_printf(reason, "%s", span);
}

void reasons_tasks(struct explain_reason *reason, const struct redisReply *tasks)
{
    for (size_t i = 0; i < fields_count(tasks); i++) {
        reasons_printf(reason, i > 0 ? ", " : "");
        reasons_bytes(reason, fields_name_at(tasks, i));
        reasons_printf(reason, " (on ");
        reasons_bytes(reason, fields_value(fields_value_at(tasks, i)));
        reasons_printf(reason, ")");
    }
}

static void put(struct explain_reason *reason, struct explain_value value)
{
    if (reason->value_count < EXPLAIN_VALUES) {
        reason->values[reason->value_count++] = value;
    }
}

void reasons_put_number(struct explain_reason *reason, const char *name, int64_t number)
{
    put(reason, (struct explain_value){.name = name, .number = number});
}

void reasons_put_text(struct explain_reason *reason, const char *name, struct bytes text)
{
    put(reason, (struct explain_value){.name = name, .text = text});
}
