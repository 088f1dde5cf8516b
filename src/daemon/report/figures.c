/*
 * Counts what the worker sees, for its heartbeats.
 */
#include "daemon/report/figures.h"

#include <inttypes.h>

static void add(struct figures *figures, enum figures_histogram histogram, int64_t value)
{
    value = value > 0 ? value : 0;
    figures->seen.used = true;
    figures->seen.buckets[histogram][figures_bucket(histogram, value)]++;
    figures->seen.sums[histogram] += (uint64_t)value;
}

static void count(struct figures *figures, enum figures_counter counter)
{
    figures->seen.used = true;
    figures->seen.counters[counter]++;
}

void figures_started(struct figures *figures, const struct task *task)
{
    if (figures) {
        count(figures, FIGURES_STARTED);
        add(figures, FIGURES_WAITING, task->waited_ms * 1000);
    }
}

void figures_ended(struct figures *figures, const struct attempt *attempt)
{
    static const struct {
        enum figures_histogram histogram;
        enum usage_item item;
    } used[] = {{FIGURES_CPU, USAGE_CPU_US}, {FIGURES_MEMORY, USAGE_MEMORY_PEAK}};
    if (attempt->ending.cause == CAUSE_LEASE_LOST) {
        count(figures, FIGURES_LEASES_LOST);
    }
    if (attempt->duration_us <= 0) {
        return; /* no process was started */
    }
    add(figures, FIGURES_DURATION, attempt->duration_us);
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        if (attempt->usage.items[used[i].item] >= 0 && attempt_has_own_usage(attempt)) {
            add(figures, used[i].histogram, attempt->usage.items[used[i].item]);
        }
    }
}

void figures_stale(struct figures *figures)
{
    count(figures, FIGURES_STALE_RESULTS);
}

/* ---- heartbeats */

static void append_histogram(const struct figures_set *set, enum figures_histogram histogram,
                             struct buffer *text)
{
    size_t bounds_count;
    const struct figures_bound *bounds = figures_bounds(histogram, &bounds_count);
    const char *name = figures_name(histogram);
    for (size_t i = 0; i < bounds_count; i++) {
        if (set->buckets[histogram][i] > 0) {
            (void)buffer_printf(text, ",\"%s:%s\":%" PRIu64, name, bounds[i].text,
                                set->buckets[histogram][i]);
        }
    }
    if (set->sums[histogram] > 0) {
        (void)buffer_printf(text, ",\"%s:sum\":%" PRIu64, name, set->sums[histogram]);
    }
}

void figures_append(struct figures *figures, struct buffer *text)
{
    static const char *const names[FIGURES_COUNTERS] = {
        [FIGURES_STARTED] = "started",
        [FIGURES_LEASES_LOST] = "leases_lost",
        [FIGURES_STALE_RESULTS] = "stale_results",
    };
    if (!figures->sent.used && figures->seen.used) {
        figures->sent = figures->seen;
        figures->seen = (struct figures_set){0};
        figures->number++;
    }
    if (!figures->sent.used) {
        return;
    }
    (void)buffer_printf(text, "\"figures\":{\"number\":%" PRIu64, figures->number);
    for (size_t i = 0; i < FIGURES_HISTOGRAMS; i++) {
        append_histogram(&figures->sent, (enum figures_histogram)i, text);
    }
    for (size_t i = 0; i < FIGURES_COUNTERS; i++) {
        if (figures->sent.counters[i] > 0) {
            (void)buffer_printf(text, ",\"%s\":%" PRIu64, names[i], figures->sent.counters[i]);
        }
    }
    (void)buffer_append_text(text, "},");
}

void figures_confirmed(struct figures *figures)
{
    figures->sent = (struct figures_set){0};
}

bool figures_are_left(const struct figures *figures)
{
    return figures->sent.used || figures->seen.used;
}
