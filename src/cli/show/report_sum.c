/*
 * Sums up ended tasks.
 */
#include "cli/show/report_sum.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/lib/rows.h"
#include "view/reply_fields.h"
#include "view/shown.h"
#include "view/usage.h"

#define GROWTH 1024                      /* tasks for which memory is taken at once */
#define MOST_ATTEMPTS (INT64_C(1) << 43) /* of a task; the sum of a million still fits */

/* ---- collecting */

static enum report_outcome outcome_of(const struct redisReply *row)
{
    struct bytes outcome = fields_bytes(row, "outcome");

    if (bytes_equal(outcome, "dead")) {
        return REPORT_DEAD;
    }
    return bytes_equal(outcome, "cancelled") ? REPORT_CANCELLED : REPORT_SUCCEEDED;
}

/* Workers write the records, and so whoever has the rights of one. */
static int64_t bounded(int64_t number, int64_t most)
{
    return number < most ? number : most;
}

/* Without a cgroup the memory is that of the largest process. */
static void read_values(const struct redisReply *row, int64_t values[REPORT_VALUES])
{
    struct bytes usage = fields_bytes(row, "usage");
    int64_t waited_ms = fields_number(row, "waited_ms", -1);

    values[REPORT_WAITING] = waited_ms < 0 ? -1 : bounded(waited_ms, INT64_MAX / 1000) * 1000;
    values[REPORT_DURATION] = fields_number(row, "duration_us", -1);
    values[REPORT_CPU] = usage_item(usage, "cpu_us");
    values[REPORT_MEMORY] = usage_item(usage, "memory_peak");
    if (values[REPORT_MEMORY] < 0) {
        values[REPORT_MEMORY] = usage_item(usage, "max_rss");
    }
}

/* Keeps the name of the group and the cause. */
static int keep_texts(struct report_task *task, const struct redisReply *row, struct bytes name)
{
    struct buffer text = BUFFER_INIT;

    /* a failed append marks the buffer */
    (void)buffer_append(&text, name.data, name.size);
    task->name_size = text.size;
    if (task->outcome == REPORT_DEAD) {
        shown_append_cause(fields_bytes(row, "cause"), fields_bytes(row, "status"), &text);
    }
    task->cause_size = text.size - task->name_size;
    (void)buffer_append(&text, "", 1);
    if (text.failed) {
        buffer_free(&text);
        return -1;
    }
    task->text = text.data;
    return 0;
}

int report_sum_add(struct report_tasks *report, const struct redisReply *row, struct bytes name)
{
    struct report_task *task;

    if (report->count % GROWTH == 0) {
        struct report_task *grown =
            reallocarray(report->tasks, report->count + GROWTH, sizeof *grown);
        if (!grown) {
            return -1;
        }
        report->tasks = grown;
    }
    task = &report->tasks[report->count];
    *task =
        (struct report_task){.outcome = outcome_of(row),
                             .attempts = bounded(fields_number(row, "attempts", 1), MOST_ATTEMPTS)};
    read_values(row, task->values);
    if (keep_texts(task, row, name) != 0) {
        return -1;
    }
    if (report->count++ == 0) {
        report->first_ms = fields_number(row, "ended_ms", 0);
    }
    return 0;
}

/* ---- summing up */

static struct bytes name_of(const struct report_task *task)
{
    return (struct bytes){task->text, task->name_size};
}

static struct bytes cause_of(const struct report_task *task)
{
    return (struct bytes){task->text + task->name_size, task->cause_size};
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

/* The least number that is not below this percentage of the sorted numbers. */
static int64_t percentile(const int64_t *numbers, size_t count, size_t percent)
{
    return numbers[(count * percent + 99) / 100 - 1];
}

/* room: for a number of each task. */
static void spread(const struct report_task *tasks, size_t count, enum report_value value,
                   int64_t *room, struct report_spread *out)
{
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        if (tasks[i].values[value] >= 0) {
            room[known++] = tasks[i].values[value];
        }
    }
    *out = (struct report_spread){.count = known};
    if (known > 0) {
        qsort(room, known, sizeof *room, compare_numbers);
        out->p50 = percentile(room, known, 50);
        out->p95 = percentile(room, known, 95);
        out->most = room[known - 1];
    }
}

static int compare_causes(const void *a, const void *b)
{
    const struct report_cause *left = a, *right = b;

    if (left->count != right->count) {
        return left->count < right->count ? 1 : -1;
    }
    return bytes_compare(left->name, right->name);
}

static int compare_names(const void *a, const void *b)
{
    const struct report_cause *left = a, *right = b;

    return bytes_compare(left->name, right->name);
}

/* Counts the causes: sorts those of all failures, and joins equal ones. */
static int count_causes(const struct report_task *tasks, size_t count, struct report_sum *sum)
{
    struct report_cause *causes = calloc(sum->outcomes[REPORT_DEAD] + 1, sizeof *causes);
    size_t found = 0, joined = 0;

    if (!causes) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].outcome == REPORT_DEAD) {
            causes[found++] = (struct report_cause){cause_of(&tasks[i]), 1};
        }
    }
    qsort(causes, found, sizeof *causes, compare_names);
    for (size_t i = 0; i < found; i++) {
        if (joined > 0 && bytes_compare(causes[joined - 1].name, causes[i].name) == 0) {
            causes[joined - 1].count++;
        } else {
            causes[joined++] = causes[i];
        }
    }
    qsort(causes, joined, sizeof *causes, compare_causes);
    sum->causes = causes;
    sum->cause_count = joined;
    return 0;
}

static int sum_up(const struct report_task *tasks, size_t count, struct report_sum *sum)
{
    int64_t *room = calloc(count + 1, sizeof *room);
    int result;

    *sum = (struct report_sum){.ended = count};
    if (!room) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        sum->outcomes[tasks[i].outcome]++;
        sum->retries += tasks[i].attempts > 1 ? tasks[i].attempts - 1 : 0;
    }
    for (size_t i = 0; i < REPORT_VALUES; i++) {
        spread(tasks, count, (enum report_value)i, room, &sum->spreads[i]);
    }
    result = count_causes(tasks, count, sum);
    free(room);
    return result;
}

int report_sum_total(const struct report_tasks *report, struct report_sum *total)
{
    return sum_up(report->tasks, report->count, total);
}

/* ---- groups */

static int compare_tasks(const void *a, const void *b)
{
    return bytes_compare(name_of(a), name_of(b));
}

static int compare_sums(const void *a, const void *b)
{
    const struct report_sum *left = a, *right = b;

    if (left->ended != right->ended) {
        return left->ended < right->ended ? 1 : -1;
    }
    return bytes_compare(left->name, right->name);
}

/* How many of the sorted tasks have the name of the first one. */
static size_t group_size(const struct report_task *tasks, size_t count)
{
    size_t size = 1;

    while (size < count && compare_tasks(&tasks[0], &tasks[size]) == 0) {
        size++;
    }
    return size;
}

int report_sum_groups(struct report_tasks *report, struct report_sum **groups, size_t *count)
{
    struct report_sum *sums = calloc(report->count + 1, sizeof *sums);
    size_t size;

    *groups = sums;
    *count = 0;
    if (!sums) {
        return -1;
    }
    if (report->count > 0) {
        qsort(report->tasks, report->count, sizeof *report->tasks, compare_tasks);
    }
    for (size_t at = 0; at < report->count; at += size) {
        size = group_size(report->tasks + at, report->count - at);
        if (sum_up(report->tasks + at, size, &sums[*count]) != 0) {
            return -1;
        }
        sums[(*count)++].name = name_of(&report->tasks[at]);
    }
    qsort(sums, *count, sizeof *sums, compare_sums);
    return 0;
}

void report_sum_free(struct report_sum *sums, size_t count)
{
    for (size_t i = 0; sums && i < count; i++) {
        free(sums[i].causes);
    }
    free(sums);
}

void report_tasks_free(struct report_tasks *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free(report->tasks[i].text);
    }
    free(report->tasks);
    *report = (struct report_tasks){0};
}
