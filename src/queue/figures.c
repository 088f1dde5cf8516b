/*
 * The buckets of the histograms.
 */
#include "queue/figures.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const struct figures_bound times[] = {
    {"0.001", INT64_C(1000)},          {"0.0025", INT64_C(2500)},
    {"0.005", INT64_C(5000)},          {"0.01", INT64_C(10000)},
    {"0.025", INT64_C(25000)},         {"0.05", INT64_C(50000)},
    {"0.1", INT64_C(100000)},          {"0.25", INT64_C(250000)},
    {"0.5", INT64_C(500000)},          {"1", INT64_C(1000000)},
    {"2.5", INT64_C(2500000)},         {"5", INT64_C(5000000)},
    {"10", INT64_C(10000000)},         {"25", INT64_C(25000000)},
    {"50", INT64_C(50000000)},         {"100", INT64_C(100000000)},
    {"250", INT64_C(250000000)},       {"500", INT64_C(500000000)},
    {"1000", INT64_C(1000000000)},     {"2500", INT64_C(2500000000)},
    {"5000", INT64_C(5000000000)},     {"10000", INT64_C(10000000000)},
    {"25000", INT64_C(25000000000)},   {"50000", INT64_C(50000000000)},
    {"100000", INT64_C(100000000000)}, {"inf", INT64_MAX},
};

static const struct figures_bound sizes[] = {
    {"1000000", INT64_C(1000000)},
    {"2500000", INT64_C(2500000)},
    {"5000000", INT64_C(5000000)},
    {"10000000", INT64_C(10000000)},
    {"25000000", INT64_C(25000000)},
    {"50000000", INT64_C(50000000)},
    {"100000000", INT64_C(100000000)},
    {"250000000", INT64_C(250000000)},
    {"500000000", INT64_C(500000000)},
    {"1000000000", INT64_C(1000000000)},
    {"2500000000", INT64_C(2500000000)},
    {"5000000000", INT64_C(5000000000)},
    {"10000000000", INT64_C(10000000000)},
    {"25000000000", INT64_C(25000000000)},
    {"50000000000", INT64_C(50000000000)},
    {"100000000000", INT64_C(100000000000)},
    {"250000000000", INT64_C(250000000000)},
    {"500000000000", INT64_C(500000000000)},
    {"inf", INT64_MAX},
};

_Static_assert(COUNT(times) <= FIGURES_BUCKETS && COUNT(sizes) <= FIGURES_BUCKETS,
               "FIGURES_BUCKETS is too small");

const struct figures_bound *figures_bounds(enum figures_histogram histogram, size_t *count)
{
    *count = histogram == FIGURES_MEMORY ? COUNT(sizes) : COUNT(times);
    return histogram == FIGURES_MEMORY ? sizes : times;
}

const char *figures_name(enum figures_histogram histogram)
{
    static const char *const names[FIGURES_HISTOGRAMS] = {
        [FIGURES_WAITING] = "waiting",
        [FIGURES_DURATION] = "duration",
        [FIGURES_CPU] = "cpu",
        [FIGURES_MEMORY] = "memory",
    };
    return names[histogram];
}

size_t figures_bucket(enum figures_histogram histogram, int64_t value)
{
    size_t count, bucket = 0;
    const struct figures_bound *bounds = figures_bounds(histogram, &count);
    while (value > bounds[bucket].most) {
        bucket++;
    }
    return bucket;
}
