/*
 * The trace context of a task: its fields traceparent, tracestate and baggage, in the forms of W3C
 * Trace Context and W3C Baggage. A field of another form counts as absent.
 */
#ifndef LEAT_QUEUE_TRACE_H
#define LEAT_QUEUE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/log/log_field.h"

enum trace_part { TRACE_PARENT, TRACE_STATE, TRACE_BAGGAGE, TRACE_PARTS };

/* Points into the fields. A part without data is absent; so is a tracestate without a traceparent.
 */
struct trace {
    struct bytes parts[TRACE_PARTS];
};

/* The name of the field and of the variable: "traceparent" and "TRACEPARENT". */
const char *trace_field(enum trace_part part);
const char *trace_variable(enum trace_part part);

/* Whether the value has the form of that part. */
bool trace_is_fine(enum trace_part part, struct bytes value);

/* Takes the field if it is a part and well-formed. Other fields have no effect. */
void trace_take(struct trace *trace, struct bytes name, struct bytes value);

/* The part, or bytes without data. */
struct bytes trace_part(const struct trace *trace, enum trace_part part);

/* Sets *field to TRACE_ID with the 32 hex digits of the trace. Returns 1, or 0 if the task has no
 * traceparent. */
size_t trace_log_field(const struct trace *trace, struct log_field *field);

#endif
