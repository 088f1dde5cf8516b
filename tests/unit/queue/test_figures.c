/* Histograms: which bucket takes a value, and percentiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "queue/figures.h"
#include "view/histogram.h"

/* Goal: bounds grow, belong to the bucket below them, and their texts are their numbers. */
static void buckets_have_bounds(void **state)
{
    (void)state;
    for (int which = 0; which < FIGURES_HISTOGRAMS; which++) {
        enum figures_histogram histogram = (enum figures_histogram)which;
        size_t count;
        const struct figures_bound *bounds = figures_bounds(histogram, &count);
        double unit = histogram == FIGURES_MEMORY ? 1 : 1e6;
        for (size_t i = 0; i + 1 < count; i++) {
            assert_true(i == 0 || bounds[i].most > bounds[i - 1].most);
            assert_int_equal((int64_t)(strtod(bounds[i].text, NULL) * unit + 0.5), bounds[i].most);
            assert_int_equal(figures_bucket(histogram, bounds[i].most), i);
            assert_int_equal(figures_bucket(histogram, bounds[i].most + 1), i + 1);
        }
        assert_string_equal(bounds[count - 1].text, "inf");
        assert_int_equal(figures_bucket(histogram, 0), 0);
        assert_int_equal(figures_bucket(histogram, INT64_MAX), count - 1);
    }
}

/* Goal: a percentile lies within the bucket of its value, and is 0 if there are no values. */
static void percentiles_are_in_their_bucket(void **state)
{
    (void)state;
    struct histogram histogram = {0};
    histogram.bounds = figures_bounds(FIGURES_DURATION, &histogram.count);
    assert_int_equal(histogram_quantile(&histogram, 0.5), 0);
    histogram.buckets[0] = 90;
    histogram.buckets[3] = 9;
    histogram.buckets[histogram.count - 1] = 1;
    histogram.total = 100;
    assert_int_equal(histogram_quantile(&histogram, 0.45), 500);
    assert_int_equal(histogram_quantile(&histogram, 0.9), 1000);
    assert_in_range(histogram_quantile(&histogram, 0.95), 5001, 10000);
    assert_int_equal(histogram_quantile(&histogram, 1), histogram.bounds[histogram.count - 2].most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_have_bounds),
        cmocka_unit_test(percentiles_are_in_their_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
