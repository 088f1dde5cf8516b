/*
 * Writes the standard input of batches, and reads their verdicts.
 */
#include "queue/batch.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "queue/task_bounds.h"

bool batch_fits(enum config_format format, const struct task *task, char *reason,
                size_t reason_size)
{
    const struct bytes *payload = task->payload;
    if (format == CONFIG_FORMAT_JSON || !payload || payload->size == 0) {
        return true;
    }
    bool lines = format == CONFIG_FORMAT_LINES;
    if (!memchr(payload->data, lines ? '\n' : '\0', payload->size - lines)) {
        return true;
    }
    (void)snprintf(reason, reason_size, "the payload holds a %s: batch_format = %s cannot carry it",
                   lines ? "newline" : "NUL byte", lines ? "lines" : "nul");
    return false;
}

bool batch_may_share(const struct config *config, const struct task *task)
{
    int64_t most = task->max_attempts > 0 ? task->max_attempts : config->retry.max_attempts;
    return task->attempt == 1 && most > 1 && task->crashes == 0 && task->timeout_ms < 0 &&
           task->max_output == 0 && !task_is_bounded(task->bounds) && !task->live &&
           !task->directory;
}

bool batch_may_reside(const struct config *config, const struct task *task, bool pipes)
{
    int64_t most = task->max_attempts > 0 ? task->max_attempts : config->retry.max_attempts;
    bool checked = config->task.check && (task->ends & (unsigned)config->task.check_after) != 0;
    bool among_others = config->task.batch == 1 || (!task->live && task->attempt < most);
    return task->crashes == 0 && !task->alone && !checked && !task_is_bounded(task->bounds) &&
           !task->directory && among_others && (pipes || (!task->live && task->max_output == 0));
}

/* ---- standard input ---- */

static int append_ended(struct buffer *input, const struct bytes *payload, char end, bool once)
{
    if (payload && buffer_append(input, payload->data, payload->size)) {
        return -1;
    }
    if (once && payload && payload->size > 0 && payload->data[payload->size - 1] == end) {
        return 0;
    }
    return buffer_append(input, &end, 1);
}

/* Sets the field in `fields`; or in `coded` if it is not UTF-8. */
static int set_field(json_t *fields, json_t *coded, const struct task_field *field)
{
    json_t *text = json_stringn(field->value.data, field->value.size);
    if (text) {
        return json_object_set_new(fields, field->name.data, text);
    }
    char *base64 = base64_encode(field->value.data, field->value.size);
    int result = base64 ? json_object_set_new(coded, field->name.data, json_string(base64)) : -1;
    free(base64);
    return result;
}

/* Adds what a record says beside the task. Returns 0, or not without memory. */
static int describe_record(json_t *object, const struct task *task,
                           const struct batch_record *record)
{
    int failed = json_object_set_new(object, "index", json_integer((json_int_t)record->number));
    failed |= json_object_set_new(object, "max_attempts", json_integer(record->max_attempts));
    failed |= json_object_set_new(object, "fence", json_integer(task->fence));
    failed |=
        json_object_set_new(object, "enqueued_at", json_real((double)task->enqueued_ms / 1e3));
    if (record->deadline_wall_ms > 0) {
        failed |= json_object_set_new(object, "deadline",
                                      json_real((double)record->deadline_wall_ms / 1e3));
    }
    return failed;
}

/* Describes a task as JSON. Takes ownership of both objects. Returns NULL without memory. */
static json_t *describe_task(const struct task *task, const struct batch_record *record,
                             json_t *fields, json_t *coded)
{
    int failed = coded ? 0 : -1;
    for (size_t i = 0; fields && coded && i < task->field_count; i++) {
        failed |= set_field(fields, coded, &task->fields[i]);
    }
    json_t *object = json_object();
    failed |= json_object_set_new(object, "tid", json_string(task->tid));
    failed |= json_object_set_new(object, "attempt", json_integer(task->attempt));
    if (record) {
        failed |= describe_record(object, task, record);
    }
    json_t *label = task->label ? json_stringn(task->label->data, task->label->size) : NULL;
    if (label) {
        failed |= json_object_set_new(object, "id", label);
    }
    failed |= json_object_set_new(object, "fields", fields);
    if (json_object_size(coded) > 0) {
        failed |= json_object_set(object, "base64", coded);
    }
    json_decref(coded);
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static int append_piece(const char *text, size_t size, void *context)
{
    return buffer_append(context, text, size);
}

static int append_json(struct buffer *input, const struct task *task,
                       const struct batch_record *record)
{
    enum { DIGITS = 13 }; /* a time has three decimals, and ten digits before them */
    /* in ASCII, since some readers of lines, such as that of Node, end them at U+2028, too */
    json_t *object = describe_task(task, record, json_object(), json_object());
    int result =
        object ? json_dump_callback(object, append_piece, input,
                                    JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS))
               : -1;
    json_decref(object);
    /* jansson 2.14 ignores failures to write member names, but the buffer remembers them */
    return result || input->failed ? -1 : buffer_append(input, "\n", 1);
}

int batch_append(struct buffer *input, enum config_format format, const struct task *task,
                 const struct batch_record *record)
{
    switch (format) {
    case CONFIG_FORMAT_LINES:
        return append_ended(input, task->payload, '\n', true);
    case CONFIG_FORMAT_NUL:
        return append_ended(input, task->payload, '\0', false);
    case CONFIG_FORMAT_JSON:
        return append_json(input, task, record);
    }
    return -1;
}

/* ---- descriptor 3 ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns the first word, and moves *rest behind it and the following blanks. */
static struct bytes take_word(struct bytes *rest)
{
    struct bytes word = {.data = rest->data, .size = 0};
    while (word.size < rest->size && !is_blank(rest->data[word.size])) {
        word.size++;
    }
    size_t taken = word.size;
    while (taken < rest->size && is_blank(rest->data[taken])) {
        taken++;
    }
    *rest = (struct bytes){rest->data + taken, rest->size - taken};
    return word;
}

/* Returns the number in the word; 0 if it is none from 1 to `most`. */
static size_t read_index(struct bytes word, size_t most)
{
    size_t index = 0;
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] < '0' || word.data[i] > '9') {
            return 0;
        }
        index = index * 10 + (size_t)(word.data[i] - '0');
        if (index > most) {
            return 0;
        }
    }
    return index;
}

/* Reads the exit code after "exit". Returns false for anything else. */
static bool read_code(struct bytes *rest, int *code)
{
    struct bytes word = take_word(rest);
    size_t number = read_index(word, CONFIG_CODES - 1);
    *code = (int)number;
    return number > 0 || bytes_equal(word, "0");
}

bool batch_read(const char *line, size_t size, size_t count, bool with_code,
                struct batch_verdict *verdict)
{
    static const enum verdict known[] = {VERDICT_SUCCESS, VERDICT_RETRY, VERDICT_DEAD};

    struct bytes rest = {line, size};
    verdict->index = read_index(take_word(&rest), count);
    struct bytes word = take_word(&rest);
    verdict->code = -1;
    if (with_code && bytes_equal(word, "exit")) {
        bool has_code = read_code(&rest, &verdict->code);
        verdict->verdict = verdict->code == 0 ? VERDICT_SUCCESS : VERDICT_RETRY;
        verdict->reason = rest;
        return has_code && verdict->index > 0;
    }
    verdict->reason = rest;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (bytes_equal(word, verdict_report_name(known[i]))) {
            verdict->verdict = known[i];
            return verdict->index > 0;
        }
    }
    return false;
}
