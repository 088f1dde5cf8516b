/*
 * Reads trace contexts of tasks.
 */
#include "queue/trace.h"

#include <string.h>

/* "00-TRACEID-PARENTID-00": where its parts begin, and how many hex digits they have */
enum {
    VERSION_SIZE = 2,
    ID_AT = 3,
    ID_SIZE = 32,
    PARENT_AT = 36,
    PARENT_SIZE = 16,
    FLAGS_AT = 53,
    FLAGS_SIZE = 2,
    WHOLE = 55,
};

enum {
    MOST_BYTES = 8192, /* of each part */
    STATE_MEMBERS = 32,
    BAGGAGE_MEMBERS = 180,
    STATE_BYTES = 256, /* of a key and of a value */
};

static const char lower_hex[] = "0123456789abcdef";
static const char state_key[] = "abcdefghijklmnopqrstuvwxyz0123456789_-*/@";
static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "!#$%&'*+-.^_`|~";

const char *trace_field(enum trace_part part)
{
    static const char *const names[] = {
        [TRACE_PARENT] = "traceparent", [TRACE_STATE] = "tracestate", [TRACE_BAGGAGE] = "baggage"};
    return names[part];
}

const char *trace_variable(enum trace_part part)
{
    static const char *const names[] = {
        [TRACE_PARENT] = "TRACEPARENT", [TRACE_STATE] = "TRACESTATE", [TRACE_BAGGAGE] = "BAGGAGE"};
    return names[part];
}

/* The number of bytes at the start that are in the set. */
static size_t span(struct bytes text, const char *set)
{
    size_t size = 0;
    while (size < text.size && text.data[size] != '\0' && strchr(set, text.data[size])) {
        size++;
    }
    return size;
}

static struct bytes part_of(struct bytes text, size_t at, size_t size)
{
    return (struct bytes){text.data + at, size};
}

static bool is_hex(struct bytes text)
{
    return span(text, lower_hex) == text.size;
}

static bool is_printable(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < ' ' || text.data[i] > '~') {
            return false;
        }
    }
    return true;
}

/* Ids that are all zeros are invalid. */
static bool is_id(struct bytes id)
{
    return is_hex(id) && span(id, "0") < id.size;
}

/* A later version may have more parts. */
static bool is_parent(struct bytes value)
{
    if (value.size < WHOLE || value.data[ID_AT - 1] != '-' || value.data[PARENT_AT - 1] != '-' ||
        value.data[FLAGS_AT - 1] != '-' || !is_printable(value)) {
        return false;
    }
    struct bytes version = part_of(value, 0, VERSION_SIZE);
    bool is_whole =
        value.size == WHOLE || (value.data[WHOLE] == '-' && !bytes_equal(version, "00"));
    return is_whole && is_hex(version) && !bytes_equal(version, "ff") &&
           is_id(part_of(value, ID_AT, ID_SIZE)) && is_id(part_of(value, PARENT_AT, PARENT_SIZE)) &&
           is_hex(part_of(value, FLAGS_AT, FLAGS_SIZE));
}

static struct bytes trimmed(struct bytes text)
{
    size_t before = span(text, " \t");
    text = part_of(text, before, text.size - before);
    while (text.size > 0 && strchr(" \t", text.data[text.size - 1])) {
        text.size--;
    }
    return text;
}

/* KEY=VALUE of a tracestate. */
static bool is_state_member(struct bytes member)
{
    size_t key = span(member, state_key);
    if (key == 0 || key > STATE_BYTES || strchr("_-*/@", member.data[0]) || key == member.size ||
        member.data[key] != '=') {
        return false;
    }
    struct bytes value = part_of(member, key + 1, member.size - key - 1);
    return value.size > 0 && value.size <= STATE_BYTES && !memchr(value.data, '=', value.size) &&
           is_printable(value);
}

/* KEY=VALUE of a baggage, with properties after semicolons. */
static bool is_baggage_member(struct bytes member)
{
    size_t key = span(member, token);
    struct bytes rest = trimmed(part_of(member, key, member.size - key));
    return key > 0 && rest.size > 0 && rest.data[0] == '=' && is_printable(rest) &&
           !memchr(rest.data, '"', rest.size) && !memchr(rest.data, '\\', rest.size);
}

/* Whether the list has from one to `most` members, all of that form, separated by commas. */
static bool is_list(struct bytes list, size_t most, bool (*is_member)(struct bytes member))
{
    size_t count = 0;
    for (size_t at = 0; at <= list.size; count++) {
        const char *comma = memchr(list.data + at, ',', list.size - at);
        size_t size = comma ? (size_t)(comma - list.data) - at : list.size - at;
        if (count == most || !is_member(trimmed(part_of(list, at, size)))) {
            return false;
        }
        at += size + 1;
    }
    return true;
}

bool trace_is_fine(enum trace_part part, struct bytes value)
{
    if (value.size == 0 || value.size > MOST_BYTES) {
        return false;
    }
    switch (part) {
    case TRACE_PARENT:
        return is_parent(value);
    case TRACE_STATE:
        return is_list(value, STATE_MEMBERS, is_state_member);
    case TRACE_BAGGAGE:
        return is_list(value, BAGGAGE_MEMBERS, is_baggage_member);
    case TRACE_PARTS:
        break;
    }
    return false;
}

void trace_take(struct trace *trace, struct bytes name, struct bytes value)
{
    for (enum trace_part part = 0; part < TRACE_PARTS; part++) {
        if (bytes_equal(name, trace_field(part)) && trace_is_fine(part, value)) {
            trace->parts[part] = value;
        }
    }
}

struct bytes trace_part(const struct trace *trace, enum trace_part part)
{
    bool is_alone = part == TRACE_STATE && !trace->parts[TRACE_PARENT].data;
    return is_alone ? (struct bytes){NULL, 0} : trace->parts[part];
}

size_t trace_log_field(const struct trace *trace, struct log_field *field)
{
    struct bytes parent = trace->parts[TRACE_PARENT];
    if (!parent.data) {
        return 0;
    }
    *field = (struct log_field){.name = "TRACE_ID", .data = parent.data + ID_AT, .size = ID_SIZE};
    return 1;
}
