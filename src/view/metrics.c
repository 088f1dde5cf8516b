/*
 * The state of queues as metrics: all samples of one metric together, as the formats demand.
 */
#include "view/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "view/histogram.h"

struct metrics {
    const struct metrics_queue *queues;
    size_t count;
    enum metrics_format format;
    struct buffer *out; /* a failed append marks it */
};

/* ---- lines */

/* Begins a metric. Names of counters in samples end in _total, which OpenMetrics leaves out here.
 */
static void begin(const struct metrics *metrics, const char *name, const char *type,
                  const char *help)
{
    bool plain = metrics->format == METRICS_TEXT;
    const char *suffix = plain && strcmp(type, "counter") == 0 ? "_total"
                         : plain && strcmp(type, "info") == 0  ? "_info"
                                                               : "";

    (void)buffer_printf(metrics->out, "# HELP leat_%s%s %s\n# TYPE leat_%s%s %s\n", name, suffix,
                        help, name, suffix, plain && strcmp(type, "info") == 0 ? "gauge" : type);
}

/* Appends the value of a label. Bytes that are no text become escapes, so a backslash is doubled
 * first: two lanes must never give the same series. Then quotes and backslashes are escaped as the
 * format demands. */
static void append_value(const struct metrics *metrics, struct bytes value)
{
    struct buffer doubled = BUFFER_INIT, escaped = BUFFER_INIT;

    for (size_t i = 0; i < value.size; i++) {
        (void)buffer_append(&doubled, "\\", value.data[i] == '\\');
        (void)buffer_append(&doubled, &value.data[i], 1);
    }
    metrics->out->failed |=
        doubled.failed || escape_append(&escaped, doubled.data, doubled.size) != 0;
    for (size_t i = 0; i < escaped.size; i++) {
        if (escaped.data[i] == '"' || escaped.data[i] == '\\') {
            (void)buffer_append(metrics->out, "\\", 1);
        }
        (void)buffer_append(metrics->out, &escaped.data[i], 1);
    }
    buffer_free(&doubled);
    buffer_free(&escaped);
}

static void append_label(const struct metrics *metrics, const char *separator, const char *name,
                         struct bytes value)
{
    (void)buffer_printf(metrics->out, "%s%s=\"", separator, name);
    append_value(metrics, value);
    (void)buffer_append_text(metrics->out, "\"");
}

/* "leat_NAME{queue="QUEUE"", to which further labels can be added. */
static void begin_sample(const struct metrics *metrics, const char *name, const char *suffix,
                         const struct metrics_queue *queue)
{
    (void)buffer_printf(metrics->out, "leat_%s%s", name, suffix);
    append_label(metrics, "{", "queue", bytes_of(queue->name));
}

static void end_sample(const struct metrics *metrics, int64_t value)
{
    (void)buffer_printf(metrics->out, "} %" PRId64 "\n", value);
}

static void add_sample(const struct metrics *metrics, const char *name, const char *suffix,
                       const struct metrics_queue *queue, int64_t value)
{
    begin_sample(metrics, name, suffix, queue);
    end_sample(metrics, value);
}

static void add_labelled(const struct metrics *metrics, const char *name, const char *suffix,
                         const struct metrics_queue *queue, const char *label, struct bytes of,
                         int64_t value)
{
    begin_sample(metrics, name, suffix, queue);
    append_label(metrics, ",", label, of);
    end_sample(metrics, value);
}

/* ---- numbers of a queue */

static int64_t paused(const struct status *status)
{
    return status->paused_ms > 0;
}

static int64_t live_workers(const struct status *status)
{
    return (int64_t)status->live_count;
}

static int64_t lost_workers(const struct status *status)
{
    return (int64_t)(status->worker_count - status->live_count);
}

static int64_t disabled_workers(const struct status *status)
{
    int64_t count = 0;

    for (size_t i = 0; i < status->live_count; i++) {
        count += status_is_disabled(&status->workers[i]);
    }
    return count;
}

static int64_t pressed_workers(const struct status *status)
{
    int64_t count = 0;

    for (size_t i = 0; i < status->live_count; i++) {
        count += strcmp(status->workers[i].state, "pressed") == 0;
    }
    return count;
}

static int64_t slots(const struct status *status)
{
    int64_t sum = 0;

    for (size_t i = 0; i < status->live_count; i++) {
        sum += status->workers[i].slots > 0 ? status->workers[i].slots : 0;
    }
    return sum;
}

static int64_t busy(const struct status *status)
{
    int64_t sum = 0;

    for (size_t i = 0; i < status->live_count; i++) {
        sum += status->workers[i].running > 0 ? status->workers[i].running : 0;
    }
    return sum;
}

/* Metrics with one sample for each queue. The first that is set gives the number. */
static const struct {
    const char *name, *type, *help;
    int64_t (*number)(const struct status *status);
    const char *figure;  /* of leat_status */
    const char *counter; /* of its figures: see view/histogram.h */
} numbers[] = {
    {"queue_paused", "gauge", "Whether an operator has paused the queue.", paused, NULL, NULL},
    {"workers", "gauge", "Live workers.", live_workers, NULL, NULL},
    {"workers_lost", "gauge", "Workers that have been silent for a lease.", lost_workers, NULL,
     NULL},
    {"workers_disabled", "gauge", "Live workers that can take no tasks until a fault is gone.",
     disabled_workers, NULL, NULL},
    {"workers_pressed", "gauge", "Live workers that take no tasks, as their host is pressed.",
     pressed_workers, NULL, NULL},
    {"worker_slots", "gauge", "Slots of all live workers.", slots, NULL, NULL},
    {"worker_busy", "gauge", "Tasks that run on live workers.", busy, NULL, NULL},
    {"lanes", "gauge", "Lanes that have waiting tasks.", NULL, "lanes", NULL},
    {"tasks_enqueued", "counter", "Tasks that were added.", NULL, "total_enqueued", NULL},
    {"tasks_started", "counter", "Attempts that workers began.", NULL, NULL, "f:started"},
    {"tasks_succeeded", "counter", "Tasks that succeeded.", NULL, "total_succeeded", NULL},
    {"tasks_cancelled", "counter", "Tasks that were cancelled.", NULL, "total_cancelled", NULL},
    {"task_crashes", "counter", "Attempts that were lost with their worker.", NULL, "total_crashes",
     NULL},
    {"leases_lost", "counter", "Attempts that were ended because their lease was lost.", NULL, NULL,
     "f:leases_lost"},
    {"stale_results", "counter", "Outcomes that were refused, as another worker had the task.",
     NULL, NULL, "f:stale_results"},
};

static void add_numbers(const struct metrics *metrics)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *suffix = strcmp(numbers[i].type, "counter") == 0 ? "_total" : "";
        begin(metrics, numbers[i].name, numbers[i].type, numbers[i].help);
        for (size_t n = 0; n < metrics->count; n++) {
            const struct metrics_queue *queue = &metrics->queues[n];
            if (queue->status) {
                add_sample(metrics, numbers[i].name, suffix, queue,
                           numbers[i].number ? numbers[i].number(queue->status)
                           : numbers[i].figure
                               ? status_figure(queue->status, numbers[i].figure)
                               : histogram_counter(queue->status, numbers[i].counter));
            }
        }
    }
}

static void add_up(const struct metrics *metrics)
{
    begin(metrics, "up", "gauge", "Whether the state of the queue could be read from Redis.");
    for (size_t n = 0; n < metrics->count; n++) {
        add_sample(metrics, "up", "", &metrics->queues[n], metrics->queues[n].status != NULL);
    }
}

static void add_tasks(const struct metrics *metrics)
{
    static const char *const states[] = {"ready", "running", "delayed", "retrying", "dead"};

    begin(metrics, "tasks", "gauge", "Tasks by state; dead: dead letters.");
    for (size_t n = 0; n < metrics->count; n++) {
        const struct metrics_queue *queue = &metrics->queues[n];
        for (size_t i = 0; queue->status && i < sizeof states / sizeof *states; i++) {
            add_labelled(metrics, "tasks", "", queue, "state", bytes_of(states[i]),
                         status_figure(queue->status, states[i]));
        }
    }
}

static void add_oldest(const struct metrics *metrics)
{
    begin(metrics, "oldest_ready_seconds", "gauge",
          "How long the oldest ready task has waited; 0 if none is ready.");
    for (size_t n = 0; n < metrics->count; n++) {
        const struct metrics_queue *queue = &metrics->queues[n];
        if (queue->status) {
            begin_sample(metrics, "oldest_ready_seconds", "", queue);
            (void)buffer_printf(metrics->out, "} %.3f\n",
                                (double)status_figure(queue->status, "oldest_ready_ms") / 1000);
        }
    }
}

/* ---- ends and histograms */

static void add_ends(const struct metrics *metrics, const char *outcome, const char *name,
                     const char *help)
{
    begin(metrics, name, "counter", help);
    for (size_t n = 0; n < metrics->count; n++) {
        const struct metrics_queue *queue = &metrics->queues[n];
        struct histogram_end end;
        size_t at = 0;
        while (queue->status && histogram_next_end(queue->status, &at, &end)) {
            if (bytes_equal(end.outcome, outcome)) {
                add_labelled(metrics, name, "_total", queue, "cause", end.cause, end.number);
            }
        }
    }
}

static void add_buckets(const struct metrics *metrics, const char *name,
                        const struct metrics_queue *queue, enum figures_histogram which)
{
    struct histogram histogram;
    int64_t below = 0;

    histogram_read(queue->status, which, &histogram);
    for (size_t i = 0; i < histogram.count; i++) {
        const char *bound = i + 1 < histogram.count ? histogram.bounds[i].text : "+Inf";
        below += histogram.buckets[i];
        add_labelled(metrics, name, "_bucket", queue, "le", bytes_of(bound), below);
    }
    begin_sample(metrics, name, "_sum", queue);
    (void)buffer_printf(metrics->out, "} %.6f\n",
                        (double)histogram.sum / (which == FIGURES_MEMORY ? 1 : 1e6));
    add_sample(metrics, name, "_count", queue, histogram.total);
}

static void add_histograms(const struct metrics *metrics)
{
    static const struct {
        const char *name, *help;
        enum figures_histogram which;
    } histograms[] = {
        {"task_waiting_seconds", "From when a task could start until a worker claimed it.",
         FIGURES_WAITING},
        {"task_duration_seconds", "How long attempts took.", FIGURES_DURATION},
        {"task_cpu_seconds", "CPU time of attempts.", FIGURES_CPU},
        {"task_memory_bytes", "The most memory that attempts used at once.", FIGURES_MEMORY},
    };

    for (size_t i = 0; i < sizeof histograms / sizeof *histograms; i++) {
        begin(metrics, histograms[i].name, "histogram", histograms[i].help);
        for (size_t n = 0; n < metrics->count; n++) {
            if (metrics->queues[n].status) {
                add_buckets(metrics, histograms[i].name, &metrics->queues[n], histograms[i].which);
            }
        }
    }
}

/* ---- lanes */

static void add_lanes(const struct metrics *metrics, const char *name, const char *help,
                      size_t offset)
{
    begin(metrics, name, "gauge", help);
    for (size_t n = 0; n < metrics->count; n++) {
        const struct metrics_queue *queue = &metrics->queues[n];
        for (size_t i = 0; queue->lanes && i < queue->lanes->count && i < METRICS_LANES; i++) {
            const struct lane *lane = &queue->lanes->list[i];
            int64_t value;
            memcpy(&value, (const char *)lane + offset, sizeof value);
            add_labelled(metrics, name, "", queue, "lane", buffer_bytes(&lane->name), value);
        }
    }
}

int metrics_append(const struct metrics_queue *queues, size_t count, enum metrics_format format,
                   struct buffer *out)
{
    const struct metrics metrics = {queues, count, format, out};

    begin(&metrics, "build", "info", "The version of the program that wrote these metrics.");
    (void)buffer_append_text(out, "leat_build_info{version=\"" LEAT_VERSION "\"} 1\n");
    add_up(&metrics);
    add_tasks(&metrics);
    add_oldest(&metrics);
    add_numbers(&metrics);
    add_ends(&metrics, "retry", "tasks_retried", "Failed attempts that are retried.");
    add_ends(&metrics, "dead", "tasks_dead", "Tasks that became dead letters.");
    add_ends(&metrics, "release", "tasks_released", "Attempts returned without being counted.");
    add_histograms(&metrics);
    add_lanes(&metrics, "lane_waiting", "Waiting tasks of the longest lanes.",
              offsetof(struct lane, waiting));
    add_lanes(&metrics, "lane_running", "Running tasks of the longest lanes.",
              offsetof(struct lane, running));
    if (format == METRICS_OPENMETRICS) {
        (void)buffer_append_text(out, "# EOF\n");
    }
    return out->failed ? -1 : 0;
}
