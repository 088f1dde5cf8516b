/* Goal: no task that Redis can return, in whatever form, breaks decoding, checking or batches,
 * and no line of a batch's process does. The bytes are RESP as from a socket; bytes that do not
 * parse are tried as the fields of a well-formed task. */
#include <hiredis/hiredis.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "bounds.h"
#include "queue/batch.h"
#include "queue/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In each form the task ends exactly where the form says. */
static void try_batch(const struct task *task)
{
    static const struct {
        enum config_format format;
        char end;
    } forms[] = {
        {CONFIG_FORMAT_LINES, '\n'}, {CONFIG_FORMAT_NUL, '\0'}, {CONFIG_FORMAT_JSON, '\n'}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct buffer input = BUFFER_INIT;
        char reason[160];
        if (batch_fits(forms[i].format, task, reason, sizeof reason) &&
            batch_append(&input, forms[i].format, task) == 0 &&
            memchr(input.data, forms[i].end, input.size) != input.data + input.size - 1) {
            abort();
        }
        buffer_free(&input);
    }
}

static void try_verdict(const char *line, size_t size)
{
    struct batch_verdict verdict;
    if (batch_read(line, size, 100, &verdict) &&
        (verdict.index < 1 || verdict.index > 100 || verdict.verdict == VERDICT_RELEASE ||
         verdict.reason.data < line || verdict.reason.data + verdict.reason.size != line + size)) {
        abort();
    }
}

/* The properties of a decoded or accepted task on which the rest of leat relies. */
static void examine(struct task *task, bool own_command)
{
    char reason[64] = "";
    bool fine = task_check(task, own_command, reason, sizeof reason);
    if (!memchr(reason, '\0', sizeof reason) || (fine ? *reason != '\0' : *reason == '\0') ||
        strlen(task->token) > SIZE_MAX / 2 || strlen(task->tid) > SIZE_MAX / 2) {
        abort();
    }
    for (size_t i = 0; i < task->field_count; i++) {
        const struct task_field *field = &task->fields[i];
        if (field->value.data[field->value.size] != '\0' ||
            field->name.data[field->name.size] != '\0') {
            abort();
        }
        /* a field that becomes a variable has no '=' in its name and no NUL */
        if (fine && task_field_is_variable(field) &&
            (memchr(field->name.data, '=', field->name.size) ||
             strlen(field->value.data) != field->value.size)) {
            abort();
        }
    }
    if (fine) {
        try_batch(task);
    }
    if (fine && !own_command && strlen(task->command->data) != task->command->size) {
        abort();
    }
}

static void try_reply(const redisReply *reply, bool own_command)
{
    struct task *task = task_decode(reply);
    if (task) {
        examine(task, own_command);
    }
    task_free(task);
}

static void try_bytes(const void *data, size_t size, bool own_command)
{
    void *reply = NULL;
    redisReader *reader = redisReaderCreate();
    if (reader && redisReaderFeed(reader, data, size) == REDIS_OK &&
        redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        try_reply(reply, own_command);
        freeReplyObject(reply);
    }
    if (reader) {
        redisReaderFree(reader);
    }
}

/* Each value is a length byte and that many bytes. */
static void try_fields(const uint8_t *data, size_t size, bool own_command)
{
    struct buffer values = BUFFER_INIT, wire = BUFFER_INIT;
    size_t count = 0;
    while (size > 0) {
        size_t length = data[0] < size ? data[0] : size - 1;
        (void)buffer_printf(&values, "$%zu\r\n", length);
        (void)buffer_append(&values, data + 1, length);
        (void)buffer_append_text(&values, "\r\n");
        data += length + 1;
        size -= length + 1;
        count++;
    }
    if (count % 2 != 0) {
        (void)buffer_append_text(&values, "$0\r\n\r\n");
        count++;
    }
    (void)buffer_printf(
        &wire, "*7\r\n$4\r\ns1-0\r\n$3\r\n1-0\r\n:1\r\n:0\r\n:1\r\n$1\r\n5\r\n*%zu\r\n", count);
    (void)buffer_append(&wire, values.data, values.size);
    try_bytes(wire.data, wire.size, own_command);
    buffer_free(&values);
    buffer_free(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || !bounded_arrays(data, size)) {
        return 0;
    }
    bool own_command = data[0] & 1;
    try_verdict((const char *)data + 1, size - 1);
    if (data[0] & 2) {
        try_bytes(data + 1, size - 1, own_command);
    } else {
        try_fields(data + 1, size - 1, own_command);
    }
    return 0;
}
