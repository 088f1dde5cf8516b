/*
 * The result of a task, read and printed.
 */
#include "cli/show/result.h"

#include <stdio.h>
#include <string.h>

#include "cli/lib/output.h"
#include "cli/lib/text.h"
#include "queue/verdict.h"
#include "view/moment.h"
#include "view/reply_fields.h"
#include "view/usage.h"

#define WHY_WIDTH 13 /* width of most causes */

/* ---- reading */

static void read_common(const struct redisReply *fields, struct result *result)
{
    result->cause = fields_bytes(fields, "cause");
    result->status = fields_bytes(fields, "status");
    result->reason = fields_bytes(fields, "reason");
    result->worker = fields_bytes(fields, "worker");
    result->stdout_tail = fields_bytes(fields, "stdout");
    result->stderr_tail = fields_bytes(fields, "stderr");
    result->usage = fields_bytes(fields, "usage");
    result->begun_ms = fields_number(fields, "begun", -1);
}

void result_read(const struct redisReply *fields, struct result *result)
{
    struct bytes state = fields_bytes(fields, "state");

    *result = (struct result){.state = RESULT_DEAD};
    if (bytes_equal(state, verdict_name(VERDICT_SUCCESS))) {
        result->state = RESULT_SUCCEEDED;
    } else if (bytes_equal(state, verdict_name(VERDICT_CANCELLED))) {
        result->state = RESULT_CANCELLED;
    }
    read_common(fields, result);
    result->attempt = fields_number(fields, "attempt", -1);
    result->ended_ms = fields_number(fields, "ended", -1);
    result->duration_us = fields_number(fields, "duration_us", -1);
}

void result_read_letter(const struct redisReply *row, struct result *result)
{
    *result = (struct result){.state = RESULT_DEAD, .duration_us = -1};
    read_common(row, result);
    result->attempt = fields_number(row, "attempts", -1);
    result->ended_ms = fields_number(row, "died_ms", -1);
}

void result_set_unknown(struct result *result)
{
    static const struct bytes nothing = {"", 0};

    *result = (struct result){RESULT_UNKNOWN, nothing, nothing, nothing, nothing, nothing,
                              nothing,        nothing, -1,      -1,      -1,      -1};
}

/* ---- showing */

static const char *const state_names[] = {[RESULT_SUCCEEDED] = "succeeded",
                                          [RESULT_DEAD] = "dead",
                                          [RESULT_CANCELLED] = "cancelled",
                                          [RESULT_UNKNOWN] = "unknown"};

/* A success has no cause. Its status is 0 unless the worker wrote another one. */
void result_why(const struct result *result, char *text, size_t size)
{
    char cause[64] = "exit", status[64];

    if (result->state == RESULT_UNKNOWN || result->state == RESULT_CANCELLED) {
        (void)snprintf(text, size, "-");
        return;
    }
    if (result->state == RESULT_DEAD) {
        bytes_copy(result->cause, cause, sizeof cause);
    }
    bytes_copy(result->status, status, sizeof status);
    if (result->state == RESULT_SUCCEEDED && !*status) {
        (void)snprintf(status, sizeof status, "0");
    }
    (void)snprintf(text, size, "%s%s%s", cause, *status ? ":" : "", status);
}

/* How long the last attempt ran. A dead letter has only its start and end. */
static int64_t duration_ms(const struct result *result)
{
    if (result->duration_us > 0) {
        return result->duration_us / 1000;
    }
    if (result->state == RESULT_UNKNOWN || result->begun_ms <= 0 ||
        result->ended_ms < result->begun_ms) {
        return -1;
    }
    return result->ended_ms - result->begun_ms;
}

/* Fills the line, with as much as `parts` says. */
enum { PART_WHY = 1, PART_TRIES = 2, PART_ASKED = 4, PART_ALL = 7 };
static void fill_line(struct buffer *line, const char *tid, const char *asked,
                      const struct result *result, unsigned parts)
{
    char why[128], tries[24] = "-", duration[MOMENT_SIZE] = "-";
    bool is_other = strcmp(tid, asked) != 0;

    result_why(result, why, sizeof why);
    if (result->attempt >= 0) {
        (void)snprintf(tries, sizeof tries, "%lld", (long long)result->attempt);
    }
    if (duration_ms(result) >= 0) {
        moment_span(duration_ms(result), duration, sizeof duration);
    }
    /* a failed append marks the buffer */
    buffer_clear(line);
    (void)text_append(line, tid, strlen(tid));
    (void)buffer_printf(line, "  %-9s", state_names[result->state]);
    if (parts & PART_WHY) {
        (void)buffer_append_text(line, "  ");
        (void)text_append(line, why, strlen(why));
        if (parts == PART_ALL && strlen(why) < WHY_WIDTH) {
            (void)buffer_printf(line, "%*s", WHY_WIDTH - (int)strlen(why), "");
        }
    }
    if (parts & PART_TRIES) {
        (void)buffer_printf(line, "  %3s", tries);
    }
    (void)buffer_printf(line, "  %s", duration);
    if (is_other && (parts & PART_ASKED)) {
        (void)buffer_append_text(line, "  ");
        (void)text_append(line, asked, strlen(asked));
    }
}

void result_print(const char *tid, const char *asked, const struct result *result)
{
    static const unsigned choices[] = {PART_ALL, PART_WHY | PART_ASKED, PART_WHY, 0};
    struct output output = output_look();
    struct buffer line = BUFFER_INIT;

    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        fill_line(&line, tid, asked, result, choices[i]);
        if (output.width == 0 || line.failed || text_width(line.data, line.size) <= output.width) {
            break;
        }
    }
    /* a failed append marks the buffer */
    (void)buffer_append_text(&line, "\n");
    (void)output_write(&line);
    buffer_free(&line);
}

/* ---- as JSON */

static void put_bytes(json_t **object, const char *name, struct bytes bytes)
{
    if (bytes.size > 0) {
        output_put_bytes(object, name, bytes);
    }
}

static void put_number(json_t **object, const char *name, int64_t number)
{
    if (number >= 0) {
        output_put(object, name, json_integer(number));
    }
}

int result_print_json(const char *tid, const char *asked, const struct result *result)
{
    json_t *object = json_object();

    output_put_bytes(&object, "tid", bytes_of(tid));
    if (strcmp(tid, asked) != 0) {
        output_put_bytes(&object, "id", bytes_of(asked));
    }
    put_bytes(&object, "state", bytes_of(state_names[result->state]));
    put_bytes(&object, "cause", result->cause);
    put_bytes(&object, "status", result->status);
    put_bytes(&object, "reason", result->reason);
    put_bytes(&object, "worker", result->worker);
    put_number(&object, "attempts", result->attempt);
    put_number(&object, "begun_ms", result->begun_ms);
    put_number(&object, "ended_ms", result->ended_ms);
    put_number(&object, "duration_ms", duration_ms(result));
    if (result->usage.size > 0) {
        output_put(&object, "usage", usage_json(result->usage));
    }
    put_bytes(&object, "stdout", result->stdout_tail);
    put_bytes(&object, "stderr", result->stderr_tail);
    return output_json(object, false);
}
