/*
 * The totals of a queue as JSON.
 */
#include "view/totals.h"

#include "view/histogram.h"
#include "view/output_json.h"

static json_t *histogram_json(const struct status *status, enum figures_histogram which)
{
    static const struct {
        const char *seconds, *bytes;
        double share;
    } percentiles[] = {
        {"p50_s", "p50_bytes", 0.5}, {"p95_s", "p95_bytes", 0.95}, {"p99_s", "p99_bytes", 0.99}};
    bool is_size = which == FIGURES_MEMORY;
    json_t *object = json_object();
    struct histogram histogram;

    histogram_read(status, which, &histogram);
    output_put(&object, "count", json_integer(histogram.total));
    output_put(&object, is_size ? "sum_bytes" : "sum_s",
               is_size ? json_integer(histogram.sum) : json_real((double)histogram.sum / 1e6));
    for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++) {
        int64_t value = histogram_quantile(&histogram, percentiles[i].share);
        output_put(&object, is_size ? percentiles[i].bytes : percentiles[i].seconds,
                   is_size ? json_integer(value) : json_real((double)value / 1e6));
    }
    return object;
}

/* {cause: number} of one outcome. */
static json_t *ends_json(const struct status *status, const char *outcome)
{
    json_t *object = json_object();
    struct histogram_end end;
    char cause[64];

    for (size_t at = 0; histogram_next_end(status, &at, &end);) {
        if (bytes_equal(end.outcome, outcome)) {
            bytes_copy(end.cause, cause, sizeof cause);
            output_put(&object, cause, json_integer(end.number));
        }
    }
    return object;
}

json_t *totals_json(const struct status *status)
{
    static const struct {
        const char *name, *counter;
    } counters[] = {{"attempts_started", "f:started"},
                    {"leases_lost", "f:leases_lost"},
                    {"stale_results", "f:stale_results"}};
    static const struct {
        const char *name, *outcome;
    } ends[] = {
        {"retried_by_cause", "retry"}, {"dead_by_cause", "dead"}, {"released_by_cause", "release"}};
    json_t *object = json_object();

    for (size_t i = 0; i < FIGURES_HISTOGRAMS; i++) {
        enum figures_histogram which = (enum figures_histogram)i;
        output_put(&object, figures_name(which), histogram_json(status, which));
    }
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        output_put(&object, counters[i].name,
                   json_integer(histogram_counter(status, counters[i].counter)));
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        output_put(&object, ends[i].name, ends_json(status, ends[i].outcome));
    }
    return object;
}
