/*
 * Reads the figures in replies of leat_status.
 */
#include "view/histogram.h"

#include <stdio.h>
#include <string.h>

#define NAME_SIZE 64

static int64_t read_number(const struct status *status, enum figures_histogram histogram,
                           const char *part)
{
    char name[NAME_SIZE];

    (void)snprintf(name, sizeof name, "f:%s:%s", figures_name(histogram), part);
    return histogram_counter(status, name);
}

void histogram_read(const struct status *status, enum figures_histogram histogram,
                    struct histogram *out)
{
    *out = (struct histogram){.sum = read_number(status, histogram, "sum")};
    out->bounds = figures_bounds(histogram, &out->count);
    for (size_t i = 0; i < out->count; i++) {
        out->buckets[i] = read_number(status, histogram, out->bounds[i].text);
        out->total += out->buckets[i];
    }
}

bool histogram_subtract(struct histogram *histogram, const struct histogram *earlier)
{
    bool fine = true;

    for (size_t i = 0; i < histogram->count; i++) {
        histogram->buckets[i] -= earlier->buckets[i];
        fine = fine && histogram->buckets[i] >= 0;
    }
    histogram->total -= earlier->total;
    histogram->sum -= earlier->sum;
    return fine;
}

int64_t histogram_quantile(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->total, before = 0;

    for (size_t i = 0; i < histogram->count; i++) {
        int64_t least = i > 0 ? histogram->bounds[i - 1].most : 0, number = histogram->buckets[i];
        if (number > 0 && before + (double)number >= wanted) {
            int64_t width =
                histogram->bounds[i].most == INT64_MAX ? 0 : histogram->bounds[i].most - least;
            return least + (int64_t)((double)width * (wanted - before) / (double)number);
        }
        before += (double)number;
    }
    return 0;
}

int64_t histogram_counter(const struct status *status, const char *name)
{
    int64_t number = fields_number(status->counts, name, 0);

    return number > 0 ? number : 0;
}

bool histogram_next_end(const struct status *status, size_t *at, struct histogram_end *end)
{
    for (; *at < fields_count(status->counts); (*at)++) {
        struct bytes name = fields_name_at(status->counts, *at);
        const char *colon = name.size > 2 && memcmp(name.data, "e:", 2) == 0
                                ? memchr(name.data + 2, ':', name.size - 2)
                                : NULL;
        if (colon) {
            size_t size = (size_t)(colon - name.data);
            *end = (struct histogram_end){
                .outcome = {name.data + 2, size - 2},
                .cause = {colon + 1, name.size - size - 1},
                .number = fields_integer(fields_value_at(status->counts, *at), 0),
            };
            (*at)++;
            return true;
        }
    }
    return false;
}
