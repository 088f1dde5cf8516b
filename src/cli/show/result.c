#include "cli/show/result.h"

#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/cli.h"
#include "cli/lib/moment.h"
#include "cli/lib/output.h"
#include "cli/lib/reply_fields.h"
#include "cli/lib/text.h"
#include "cli/show/usage.h"

#define WHY_WIDTH 13 /* of most */

/* ---- reading */

static void read_common(const struct redisReply *record, struct ended *ended)
{
    ended->cause = fields_bytes(record, "cause");
    ended->status = fields_bytes(record, "status");
    ended->reason = fields_bytes(record, "reason");
    ended->worker = fields_bytes(record, "worker");
    ended->stdout_tail = fields_bytes(record, "stdout");
    ended->stderr_tail = fields_bytes(record, "stderr");
    ended->usage = fields_bytes(record, "usage");
    ended->begun_ms = fields_number(record, "begun", -1);
}

void ended_read_result(const struct redisReply *fields, struct ended *ended)
{
    struct bytes state = fields_bytes(fields, "state");

    *ended = (struct ended){.state = ENDED_DEAD};
    if (bytes_equal(state, "success")) {
        ended->state = ENDED_SUCCEEDED;
    } else if (bytes_equal(state, "cancelled")) {
        ended->state = ENDED_CANCELLED;
    }
    read_common(fields, ended);
    ended->attempt = fields_number(fields, "attempt", -1);
    ended->ended_ms = fields_number(fields, "ended", -1);
    ended->duration_us = fields_number(fields, "duration_us", -1);
}

void ended_read_letter(const struct redisReply *row, struct ended *ended)
{
    *ended = (struct ended){.state = ENDED_DEAD, .duration_us = -1};
    read_common(row, ended);
    ended->attempt = fields_number(row, "attempts", -1);
    ended->ended_ms = fields_number(row, "died_ms", -1);
}

void ended_set_unknown(struct ended *ended)
{
    static const struct bytes nothing = {"", 0};

    *ended = (struct ended){ENDED_UNKNOWN, nothing, nothing, nothing, nothing, nothing,
                            nothing,       nothing, -1,      -1,      -1,      -1};
}

/* ---- showing */

static const char *state_name(enum ended_state state)
{
    switch (state) {
    case ENDED_SUCCEEDED:
        return "succeeded";
    case ENDED_DEAD:
        return "dead";
    case ENDED_CANCELLED:
        return "cancelled";
    case ENDED_UNKNOWN:
        break;
    }
    return "unknown";
}

/* A success says no cause, and its status where a worker said it. */
void ended_why(const struct ended *ended, char *text, size_t size)
{
    char cause[64] = "exit", status[64];

    if (ended->state == ENDED_UNKNOWN || ended->state == ENDED_CANCELLED) {
        (void)snprintf(text, size, "-");
        return;
    }
    if (ended->state == ENDED_DEAD) {
        bytes_copy(ended->cause, cause, sizeof cause);
    }
    bytes_copy(ended->status, status, sizeof status);
    if (ended->state == ENDED_SUCCEEDED && !*status) {
        (void)snprintf(status, sizeof status, "0");
    }
    (void)snprintf(text, size, "%s%s%s", cause, *status ? ":" : "", status);
}

/* How long the last attempt ran. Of a letter the time is not told to the microsecond. */
static int64_t duration_ms(const struct ended *ended)
{
    if (ended->duration_us > 0) {
        return ended->duration_us / 1000;
    }
    if (ended->state == ENDED_UNKNOWN || ended->begun_ms <= 0 ||
        ended->ended_ms < ended->begun_ms) {
        return -1;
    }
    return ended->ended_ms - ended->begun_ms;
}

void ended_print(const char *tid, const char *asked, const struct ended *ended)
{
    char why[128], tries[24] = "-", duration[MOMENT_SIZE] = "-";
    struct buffer line = BUFFER_INIT;
    size_t width;

    ended_why(ended, why, sizeof why);
    if (ended->attempt >= 0) {
        (void)snprintf(tries, sizeof tries, "%lld", (long long)ended->attempt);
    }
    if (duration_ms(ended) >= 0) {
        moment_span(duration_ms(ended), duration, sizeof duration);
    }
    /* a failed append marks the buffer */
    (void)text_append(&line, tid, strlen(tid));
    (void)buffer_printf(&line, "  %-9s  ", state_name(ended->state));
    (void)text_append(&line, why, strlen(why));
    width = strlen(why) < WHY_WIDTH ? WHY_WIDTH - strlen(why) : 0;
    (void)buffer_printf(&line, "%*s  %3s  %s", (int)width, "", tries, duration);
    if (strcmp(tid, asked) != 0) {
        (void)buffer_append_text(&line, "  ");
        (void)text_append(&line, asked, strlen(asked));
    }
    (void)buffer_append_text(&line, "\n");
    (void)output_write(&line);
    buffer_free(&line);
}

/* ---- as JSON */

static int add_bytes(json_t *object, const char *name, struct bytes bytes)
{
    return bytes.size > 0 ? output_json_bytes(object, name, bytes) : 0;
}

static int add_number(json_t *object, const char *name, int64_t number)
{
    return number >= 0 ? json_object_set_new(object, name, json_integer(number)) : 0;
}

int ended_print_json(const char *tid, const char *asked, const struct ended *ended)
{
    json_t *object = json_object();

    if (!object || output_json_bytes(object, "tid", bytes_of(tid)) != 0 ||
        (strcmp(tid, asked) != 0 && output_json_bytes(object, "id", bytes_of(asked)) != 0) ||
        add_bytes(object, "state", bytes_of(state_name(ended->state))) != 0 ||
        add_bytes(object, "cause", ended->cause) != 0 ||
        add_bytes(object, "status", ended->status) != 0 ||
        add_bytes(object, "reason", ended->reason) != 0 ||
        add_bytes(object, "worker", ended->worker) != 0 ||
        add_number(object, "attempts", ended->attempt) != 0 ||
        add_number(object, "begun_ms", ended->begun_ms) != 0 ||
        add_number(object, "ended_ms", ended->ended_ms) != 0 ||
        add_number(object, "duration_ms", duration_ms(ended)) != 0 ||
        (ended->usage.size > 0 &&
         json_object_set_new(object, "usage", usage_json(ended->usage)) != 0) ||
        add_bytes(object, "stdout", ended->stdout_tail) != 0 ||
        add_bytes(object, "stderr", ended->stderr_tail) != 0) {
        json_decref(object);
        object = NULL;
    }
    return output_json(object, false);
}
