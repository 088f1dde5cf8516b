/*
 * The head of the screen of a queue.
 */
#include "cli/top/header.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/lib/text.h"
#include "cli/top/cells.h"
#include "view/moment.h"
#include "view/output_json.h"

#define OLD_MS 15000 /* the age from which it is told */

int64_t header_now_ms(const json_t *summary)
{
    const json_t *status = json_object_get(summary, "status");

    return json_is_object(status) ? cells_number(status, "now_ms") + cells_number(summary, "age_ms")
                                  : clock_wall_ms();
}

/* ---- pieces: a failed append marks the buffer */

static void add_bytes(const json_t *object, const char *name, struct buffer *out)
{
    struct buffer decoded = BUFFER_INIT;
    struct bytes value;

    if (output_get_bytes(object, name, &decoded, &value) == 0) {
        (void)text_append(out, value.data, value.size);
    }
    buffer_free(&decoded);
}

static void add_text(const char *text, struct buffer *out)
{
    (void)text_append(out, text, strlen(text));
}

static enum text_style style_of(const char *state)
{
    return strcmp(state, "healthy") == 0  ? TEXT_GREEN
           : strcmp(state, "paused") == 0 ? TEXT_YELLOW
                                          : TEXT_RED;
}

static void add_state(const json_t *summary, bool color, struct buffer *out)
{
    const char *state = json_string_value(json_object_get(summary, "state"));

    state = state ? state : "";
    (void)text_style(out, TEXT_BOLD, color);
    add_bytes(summary, "queue", out);
    (void)text_style(out, TEXT_PLAIN, color);
    (void)buffer_append_text(out, "  ");
    (void)text_style(out, style_of(state), color);
    add_text(state, out);
    (void)text_style(out, TEXT_PLAIN, color);
}

static void add_paused(const json_t *status, int64_t now_ms, bool color, struct buffer *out)
{
    char time[MOMENT_SIZE];

    if (!json_is_true(json_object_get(status, "paused"))) {
        return;
    }
    moment_relative(cells_number(status, "paused_since_ms"), now_ms, time, sizeof time);
    (void)buffer_append_text(out, "  ");
    (void)text_style(out, TEXT_YELLOW, color);
    (void)buffer_printf(out, "PAUSED %s", time);
    if (json_object_get(status, "paused_by")) {
        (void)buffer_append_text(out, " by ");
        add_bytes(status, "paused_by", out);
    }
    (void)text_style(out, TEXT_PLAIN, color);
}

static void add_age(const json_t *summary, bool color, struct buffer *out)
{
    int64_t age_ms = cells_number(summary, "age_ms");
    char time[MOMENT_SIZE];

    if (age_ms >= OLD_MS) {
        moment_span(age_ms, time, sizeof time);
        (void)text_style(out, TEXT_YELLOW, color);
        (void)buffer_printf(out, "  as of %s ago", time);
        (void)text_style(out, TEXT_PLAIN, color);
    }
}

static void add_problems(const json_t *status, struct buffer *out)
{
    const json_t *problems = json_object_get(status, "problems");

    for (size_t i = 0; i < json_array_size(problems); i++) {
        const char *problem = json_string_value(json_array_get(problems, i));
        (void)buffer_append_text(out, "! ");
        add_text(problem ? problem : "", out);
        (void)buffer_append_text(out, "\n");
    }
}

/* ---- numbers */

/* separator: goes before it. */
static void add_figure(const json_t *figures, const char *separator, const char *name,
                       enum text_style style, bool color, struct buffer *out)
{
    int64_t figure = cells_number(figures, name);
    bool styled = color && style != TEXT_PLAIN && figure > 0;

    (void)buffer_printf(out, "%s%s ", separator, name);
    (void)text_style(out, styled ? style : TEXT_BOLD, color);
    (void)buffer_printf(out, "%lld", (long long)figure);
    (void)text_style(out, TEXT_PLAIN, color);
}

/* Appends "NAME TEXT", after a separator unless it begins the line. */
static void add_detail(const char *name, const char *text, size_t line, struct buffer *out)
{
    (void)buffer_printf(out, "%s%s %s", out->size > line ? "   " : "", name, text);
}

static void add_next(const json_t *figures, const char *member, const char *name, int64_t now_ms,
                     size_t line, struct buffer *out)
{
    int64_t at_ms = cells_number(figures, member);
    char time[MOMENT_SIZE];

    if (at_ms > 0) {
        moment_relative(at_ms, now_ms, time, sizeof time);
        add_detail(name, time, line, out);
    }
}

static void add_figures(const json_t *figures, int64_t now_ms, bool color, struct buffer *out)
{
    char time[MOMENT_SIZE];
    size_t line;

    add_figure(figures, "", "ready", TEXT_PLAIN, color, out);
    add_figure(figures, "   ", "running", TEXT_PLAIN, color, out);
    add_figure(figures, "   ", "delayed", TEXT_PLAIN, color, out);
    add_figure(figures, "   ", "retrying", TEXT_YELLOW, color, out);
    add_figure(figures, "   ", "dead", TEXT_RED, color, out);
    (void)buffer_append_text(out, "\n");
    line = out->size;
    if (cells_number(figures, "ready") > 0) {
        moment_span(cells_number(figures, "oldest_ready_ms"), time, sizeof time);
        add_detail("oldest ready", time, line, out);
    }
    add_next(figures, "next_due_ms", "next due", now_ms, line, out);
    add_next(figures, "next_retry_ms", "next retry", now_ms, line, out);
    (void)buffer_append_text(out, out->size > line ? "\n" : "");
}

/* "NAME p50 2ms p95 40ms p99 1s" */
static void add_percentiles(const json_t *totals, const char *name, struct buffer *out)
{
    static const char *const names[] = {"p50", "p95", "p99"};
    const json_t *histogram = json_object_get(totals, name);
    char member[16], time[MOMENT_SIZE];

    if (cells_number(histogram, "count") == 0) {
        return;
    }
    (void)buffer_printf(out, "   %s", name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(member, sizeof member, "%s_s", names[i]);
        double seconds = json_number_value(json_object_get(histogram, member));
        moment_span((int64_t)(seconds * 1000 + 0.999), time, sizeof time);
        (void)buffer_printf(out, " %s %s", names[i], time);
    }
}

static void add_rates(const json_t *status, struct buffer *out)
{
    const json_t *totals = json_object_get(status, "since_creation");
    int64_t over_ms = cells_number(status, "rate_over_ms");
    char time[MOMENT_SIZE];

    moment_span(over_ms, time, sizeof time);
    (void)buffer_printf(out, "%.1f tasks/s, %.1f failed/s",
                        json_number_value(json_object_get(status, "rate")),
                        json_number_value(json_object_get(status, "failure_rate")));
    if (over_ms > 0) {
        (void)buffer_printf(out, " in the last %s", time);
    }
    add_percentiles(totals, "waiting", out);
    add_percentiles(totals, "duration", out);
    (void)buffer_append_text(out, "\n");
}

/* Shows other reasons why tasks do not start: drained hosts, the rate of the queue, an outage. */
static void add_limits(const json_t *status, int64_t now_ms, struct buffer *out)
{
    const json_t *conf = json_object_get(status, "conf");
    const json_t *drained = json_object_get(status, "drained");
    char time[MOMENT_SIZE];

    for (size_t i = 0; i < json_array_size(drained); i++) {
        const char *host = json_string_value(json_array_get(drained, i));
        (void)buffer_append_text(out, i == 0 ? "drained: " : ", ");
        add_text(host && strcmp(host, "*") != 0 ? host : "all hosts", out);
    }
    (void)buffer_append_text(out, json_array_size(drained) > 0 ? "\n" : "");
    if (json_string_length(json_object_get(conf, "rate")) > 0) {
        (void)buffer_append_text(out, "limited to ");
        add_bytes(conf, "rate", out);
        (void)buffer_append_text(out, "\n");
    }
    if (cells_number(conf, "outage_until") > now_ms) {
        moment_relative(cells_number(conf, "outage_until"), now_ms, time, sizeof time);
        (void)buffer_printf(
            out, "! Redis was restarted or replaced: tasks start %s at the latest\n", time);
    }
}

void header_render(const json_t *summary, size_t width, bool color, struct buffer *out)
{
    const json_t *status = json_object_get(summary, "status");
    int64_t now_ms = header_now_ms(summary);
    size_t start = out->size;

    add_state(summary, color, out);
    add_paused(status, now_ms, color, out);
    add_age(summary, color, out);
    (void)buffer_append_text(out, "\n");
    if (json_is_object(status)) {
        add_problems(status, out);
        add_figures(json_object_get(status, "figures"), now_ms, color, out);
        add_rates(status, out);
        add_limits(status, now_ms, out);
    } else {
        (void)buffer_append_text(out, "! ");
        add_bytes(summary, "reason", out);
        (void)buffer_append_text(out, "\n");
    }
    (void)text_wrap(out, start, width);
}
