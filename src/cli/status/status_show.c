/*
 * leat status: the page of one queue, as text.
 */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/lib/table.h"
#include "cli/status/status.h"
#include "view/histogram.h"
#include "view/moment.h"
#include "view/reply_fields.h"

static void render_figure(const struct status *status, const char *name, enum text_style style,
                          const char *note, bool color, struct buffer *out)
{
    int64_t figure = status_figure(status, name);
    bool styled = color && style != TEXT_PLAIN && figure > 0;

    /* a failed append marks the buffer */
    (void)buffer_printf(out, "  %-9s ", name);
    (void)text_style(out, style, styled);
    (void)buffer_printf(out, "%12lld", (long long)figure);
    (void)text_style(out, TEXT_PLAIN, styled);
    (void)buffer_printf(out, "%s%s\n", *note ? "   " : "", note);
}

/* "TITLE in 5s", or "" if there is no such time. */
static void describe_next(const struct status *status, const char *name, const char *title,
                          char *text, size_t size)
{
    int64_t at_ms = status_figure(status, name);
    char time[MOMENT_SIZE];

    *text = '\0';
    if (at_ms > 0) {
        moment_relative(at_ms, status->now_ms, time, sizeof time);
        (void)snprintf(text, size, "%s %s", title, time);
    }
}

static void render_figures(const struct status *status, bool color, struct buffer *out)
{
    int64_t oldest_ms = status_figure(status, "oldest_ready_ms");
    int64_t laned = status_figure(status, "in_lanes");
    char time[MOMENT_SIZE], ready[2 * MOMENT_SIZE] = "", due[MOMENT_SIZE + 16],
                                      retry[MOMENT_SIZE + 16], running[160] = "";

    if (status_figure(status, "ready") > 0) {
        moment_span(oldest_ms, time, sizeof time);
        (void)snprintf(ready, sizeof ready, "oldest %s", time);
        if (laned > 0) {
            (void)snprintf(ready + strlen(ready), sizeof ready - strlen(ready), ", %lld in lanes",
                           (long long)laned);
        }
    }
    describe_next(status, "next_due_ms", "next due", due, sizeof due);
    describe_next(status, "next_retry_ms", "next retry", retry, sizeof retry);
    if (status->rate_ms > 0) {
        moment_span(status->rate_ms, time, sizeof time);
        (void)snprintf(running, sizeof running, "%.1f tasks/s, %.1f failed/s in the last %s",
                       status->rate, status->failure_rate, time);
    }
    render_figure(status, "ready", TEXT_PLAIN, ready, color, out);
    render_figure(status, "running", TEXT_PLAIN, running, color, out);
    render_figure(status, "delayed", TEXT_PLAIN, due, color, out);
    render_figure(status, "retrying", TEXT_YELLOW, retry, color, out);
    render_figure(status, "dead", TEXT_RED, "", color, out);
}

static void add_number(struct table *table, int64_t number)
{
    if (number >= 0) {
        table_printf(table, "%lld", (long long)number);
    } else {
        table_printf(table, "-");
    }
}

static void add_state(struct table *table, const struct status_worker *worker)
{
    const char *state = !worker->live ? "lost" : *worker->state ? worker->state : "-";

    if (worker->live && worker->drained && strcmp(state, "running") == 0) {
        state = "drained";
    }
    table_printf(table, "%s", state);
    if (!worker->live) {
        table_style(table, TEXT_RED);
    } else if (strcmp(state, "running") != 0 && strcmp(state, "-") != 0) {
        table_style(table, TEXT_YELLOW);
    }
}

static void add_worker(struct table *table, const struct status *status,
                       const struct status_worker *worker)
{
    char time[MOMENT_SIZE];

    table_printf(table, "%s", worker->host);
    add_number(table, worker->pid);
    add_state(table, worker);
    if (worker->running >= 0 && worker->capacity >= 0) {
        table_printf(table, "%lld/%lld", (long long)worker->running, (long long)worker->capacity);
    } else {
        add_number(table, worker->running);
    }
    add_number(table, worker->succeeded);
    add_number(table, worker->failed);
    moment_relative(worker->heartbeat_ms, status->now_ms, time, sizeof time);
    table_printf(table, "%s", time);
    time[0] = '\0';
    if (worker->started_ms > 0) {
        moment_span(status->now_ms - worker->started_ms, time, sizeof time);
    }
    table_printf(table, "%s", *time ? time : "-");
    table_printf(table, "%s", *worker->version ? worker->version : "-");
}

static int render_workers(const struct status *status, const struct output *output,
                          struct buffer *out)
{
    static const struct table_column columns[] = {
        {.title = "HOST", .flexible = true},
        {.title = "PID", .right = true, .leave_out = 3},
        {.title = "STATE"},
        {.title = "BUSY", .right = true},
        {.title = "DONE", .right = true, .leave_out = 4},
        {.title = "FAILED", .right = true},
        {.title = "SEEN", .right = true, .leave_out = 5},
        {.title = "UP", .right = true, .leave_out = 2},
        {.title = "VERSION", .flexible = true, .leave_out = 1},
    };
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof *columns};
    int result;

    if (status->worker_count == 0) {
        return buffer_append_text(out, "  no workers\n");
    }
    for (size_t i = 0; i < status->worker_count; i++) {
        add_worker(&table, status, &status->workers[i]);
    }
    result = table_render(&table, out, 2, output->width, output->color);
    table_free(&table);
    /* a failed append marks the buffer */
    (void)buffer_append_text(out, "  DONE and FAILED: since the worker's start\n");
    return result;
}

static void render_keep(const struct status *status, struct buffer *out)
{
    int64_t keep_ms = fields_number(status->conf, "dead_keep_ms", 0);
    int64_t number = fields_number(status->conf, "dead_keep_number", 0);
    char time[MOMENT_SIZE];

    /* a failed append marks the buffer */
    if (keep_ms == 0 && number == 0) {
        return;
    }
    (void)buffer_append_text(out, "  dead letters are kept");
    if (keep_ms > 0) {
        units_format_duration(keep_ms, time, sizeof time);
        (void)buffer_printf(out, " for %s", time);
    }
    if (number > 0) {
        long long share = number >= 10 ? number / 10 : 1;
        (void)buffer_printf(out, "%s the newest %lld, and %lld of tasks that never ran",
                            keep_ms > 0 ? "," : "", (long long)number, share);
    }
    (void)buffer_append_text(out, "\n");
}

static void render_by(struct bytes by, struct buffer *out)
{
    if (by.size == 0) {
        return;
    }
    /* a failed append marks the buffer */
    (void)buffer_append_text(out, " by ");
    (void)text_append(out, by.data, by.size);
}

/* Lists the drained hosts. */
static void render_drained(const struct status *status, struct buffer *out)
{
    const char *separator = "  drained: ";

    /* a failed append marks the buffer */
    for (size_t i = 0; i < fields_count(status->conf); i++) {
        char host[STATUS_DRAINED_SIZE], time[MOMENT_SIZE];
        struct bytes by;
        status_drained_host(status, i, host);
        if (!*host) {
            continue;
        }
        moment_relative(fields_stamp(fields_value(fields_value_at(status->conf, i)), &by),
                        status->now_ms, time, sizeof time);
        (void)buffer_append_text(out, separator);
        if (strcmp(host, "*") == 0) {
            (void)buffer_append_text(out, "all hosts");
        } else {
            (void)text_append(out, host, strlen(host));
        }
        (void)buffer_printf(out, " (%s", time);
        render_by(by, out);
        (void)buffer_append_text(out, ")");
        separator = ", ";
    }
    if (*separator == ',') {
        (void)buffer_append_text(out, "\n");
    }
}

/* Shows the rate limit, which may keep slots free although tasks are ready. */
static void render_rate(const struct status *status, struct buffer *out)
{
    struct bytes rate = fields_bytes(status->conf, "rate");
    int64_t burst = fields_number(status->conf, "burst", 1);

    /* a failed append marks the buffer */
    if (rate.size == 0) {
        return;
    }
    (void)buffer_append_text(out, ", rate ");
    (void)text_append(out, rate.data, rate.size);
    if (burst > 1) {
        (void)buffer_printf(out, ", burst %lld", (long long)burst);
    }
}

static void render_conf(const struct status *status, struct buffer *out)
{
    int64_t max_length = fields_number(status->conf, "max_length", 0);
    int64_t hold_until_ms = fields_number(status->conf, "hold_until", 0);
    int64_t outage_until_ms = fields_number(status->conf, "outage_until", 0);
    char time[MOMENT_SIZE];

    /* a failed append marks the buffer */
    units_format_duration(status->lease_ms, time, sizeof time);
    (void)buffer_printf(out, "  lease %s, max_crashes %lld, max_length ", time,
                        (long long)fields_number(status->conf, "max_crashes", 3));
    if (max_length > 0) {
        (void)buffer_printf(out, "%lld", (long long)max_length);
    } else {
        (void)buffer_append_text(out, "none");
    }
    render_rate(status, out);
    (void)buffer_append_text(out, "\n");
    render_keep(status, out);
    render_drained(status, out);
    if (hold_until_ms > status->now_ms) {
        moment_relative(hold_until_ms, status->now_ms, time, sizeof time);
        (void)buffer_printf(out, "  the group was created again: tasks start %s\n", time);
    }
    if (outage_until_ms > status->now_ms) {
        moment_relative(outage_until_ms, status->now_ms, time, sizeof time);
        (void)buffer_printf(
            out, "  Redis was restarted or replaced: tasks start %s at the latest\n", time);
    }
}

/* One line, such as "  waiting  p50 2ms, p95 40ms, p99 1s". */
static void render_percentiles(const struct status *status, enum figures_histogram which,
                               struct buffer *out)
{
    static const int percents[] = {50, 95, 99};
    struct histogram histogram;
    char time[MOMENT_SIZE];

    histogram_read(status, which, &histogram);
    /* a failed append marks the buffer */
    if (histogram.total == 0) {
        return;
    }
    (void)buffer_printf(out, "  %s of attempts:", figures_name(which));
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        int64_t us = histogram_quantile(&histogram, percents[i] / 100.0);
        moment_span((us + 999) / 1000, time, sizeof time);
        (void)buffer_printf(out, "%s p%d %s", i > 0 ? "," : "", percents[i], time);
    }
    (void)buffer_append_text(out, " since the queue was created\n");
}

static void render_totals(const struct status *status, struct buffer *out)
{
    static const char prefix[] = "total_";
    const char *separator = "  since the queue was created: ";

    /* a failed append marks the buffer */
    for (size_t i = 0; i < fields_count(status->figures); i++) {
        struct bytes name = fields_name_at(status->figures, i);
        int64_t value = fields_integer(fields_value_at(status->figures, i), 0);
        if (value == 0 || name.size < sizeof prefix ||
            memcmp(name.data, prefix, sizeof prefix - 1) != 0) {
            continue;
        }
        (void)buffer_append_text(out, separator);
        (void)text_append(out, name.data + sizeof prefix - 1, name.size - (sizeof prefix - 1));
        (void)buffer_printf(out, " %lld", (long long)value);
        separator = ", ";
    }
    if (*separator == ',') {
        (void)buffer_append_text(out, "\n");
    }
}

/* A paused queue is healthy, but its tasks do not start. */
static void render_paused(const struct status *status, bool color, struct buffer *out)
{
    char local[MOMENT_SIZE], relative[MOMENT_SIZE];

    /* a failed append marks the buffer */
    if (status->paused_ms == 0) {
        return;
    }
    moment_local(status->paused_ms, local, sizeof local);
    moment_relative(status->paused_ms, status->now_ms, relative, sizeof relative);
    (void)buffer_append_text(out, "  ");
    (void)text_style(out, TEXT_YELLOW, color);
    (void)buffer_printf(out, "PAUSED since %s (%s)", local, relative);
    render_by(status->paused_by, out);
    (void)text_style(out, TEXT_PLAIN, color);
}

int status_render(const struct status *status, const struct buffer *problems, const char *title,
                  const struct output *output, struct buffer *out)
{
    bool healthy = problems->size == 0;
    size_t start = out->size;

    /* a failed append marks the buffer */
    (void)text_style(out, TEXT_BOLD, output->color);
    (void)text_append(out, title, strlen(title));
    (void)text_style(out, TEXT_PLAIN, output->color);
    (void)buffer_append_text(out, "  ");
    (void)text_style(out, healthy ? TEXT_GREEN : TEXT_RED, output->color);
    (void)buffer_append_text(out, healthy ? "healthy" : "unhealthy");
    (void)text_style(out, TEXT_PLAIN, output->color);
    render_paused(status, output->color, out);
    (void)buffer_append_text(out, "\n");
    if (!healthy) {
        (void)text_append_lines(out, problems->data, problems->size, "  ! ");
    }
    render_figures(status, output->color, out);
    if (render_workers(status, output, out) != 0) {
        return -1;
    }
    render_conf(status, out);
    render_percentiles(status, FIGURES_WAITING, out);
    render_percentiles(status, FIGURES_DURATION, out);
    render_totals(status, out);
    return text_wrap(out, start, output->width);
}
