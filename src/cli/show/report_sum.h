/*
 * Sums of ended tasks: counts, causes of failures, and percentiles, of all tasks or in groups.
 */
#ifndef LEAT_CLI_SHOW_REPORT_SUM_H
#define LEAT_CLI_SHOW_REPORT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct redisReply;

enum report_outcome { REPORT_SUCCEEDED, REPORT_DEAD, REPORT_CANCELLED, REPORT_OUTCOMES };
enum report_value { REPORT_WAITING, REPORT_DURATION, REPORT_CPU, REPORT_MEMORY, REPORT_VALUES };

/* The spread of the known values, µs or bytes. count 0: none is known. */
struct report_spread {
    size_t count;
    int64_t p50, p95, most;
};

/* A cause of failures, such as "exit 3". */
struct report_cause {
    struct bytes name;
    size_t count;
};

/* Tasks with the same name. The names and the causes live as long as the report's tasks. */
struct report_sum {
    struct bytes name;
    size_t ended, outcomes[REPORT_OUTCOMES];
    int64_t retries; /* attempts before the last one of each task */
    struct report_spread spreads[REPORT_VALUES];
    struct report_cause *causes; /* owned; the most frequent one first */
    size_t cause_count;
};

/* An ended task. */
struct report_task {
    char *text; /* owned: the name of its group, and then its cause */
    size_t name_size, cause_size;
    enum report_outcome outcome;
    int64_t attempts, values[REPORT_VALUES]; /* −1: not known */
};

/* Begin with a zeroed one. */
struct report_tasks {
    struct report_task *tasks;
    size_t count;
    int64_t first_ms; /* when the first of them ended */
};

/* Adds a row of the history. name: of its group. Returns 0, or -1 without memory. */
int report_sum_add(struct report_tasks *report, const struct redisReply *row, struct bytes name);

/* Sums up all tasks. Returns 0, or -1 without memory. */
int report_sum_total(const struct report_tasks *report, struct report_sum *total);

/* Sums up the tasks of each group, sorts the tasks for that, and sets *groups, which the caller
 * frees with report_sum_free, the largest group first. Returns 0, or -1 without memory. */
int report_sum_groups(struct report_tasks *report, struct report_sum **groups, size_t *count);

void report_sum_free(struct report_sum *sums, size_t count);
void report_tasks_free(struct report_tasks *report);

#endif
