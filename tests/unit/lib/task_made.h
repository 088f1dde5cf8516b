/* Tasks for tests: made from names and values, checked like those from Redis. */
#ifndef LEAT_TESTS_TASK_MADE_H
#define LEAT_TESTS_TASK_MADE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "queue/task.h"

/* Names and values in turn, NULL-terminated list; then one payload of any bytes, or NULL.
 * Attempt 2, fence 3, enqueued at 1700000000.123. own: the config has a command. Returns NULL if
 * it is refused. */
static inline struct task *make_task(const char *const *texts, const void *payload, size_t size,
                                     bool own)
{
    size_t count = 0;
    while (texts[2 * count]) {
        count++;
    }
    size_t fields_size = (count + 1) * sizeof(struct task_field);
    struct task *task = calloc(1, sizeof *task + fields_size + size + 1);
    struct task_field *fields = (struct task_field *)(task + 1);
    for (size_t i = 0; i < count; i++) {
        fields[i].name = (struct bytes){texts[2 * i], strlen(texts[2 * i])};
        fields[i].value = (struct bytes){texts[2 * i + 1], strlen(texts[2 * i + 1])};
    }
    if (payload) {
        char *copy = memcpy((char *)fields + fields_size, payload, size);
        fields[count].name = (struct bytes){"payload", 7};
        fields[count++].value = (struct bytes){copy, size};
    }
    *task = (struct task){.token = "s5-0",
                          .tid = "1700000000123-0",
                          .attempt = 2,
                          .fence = 3,
                          .enqueued_ms = 1700000000123,
                          .field_count = count,
                          .fields = fields,
                          .timeout_ms = -1};

    char reason[160];
    if (!task_check(task, own, reason, sizeof reason)) {
        task_free(task);
        return NULL;
    }
    return task;
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL, NULL})

#endif
