/*
 * The histograms that workers fill and Redis keeps: their names, and the bounds of their buckets.
 * src/queue/lua/figures.lua has the same names.
 */
#ifndef LEAT_QUEUE_FIGURES_H
#define LEAT_QUEUE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

enum figures_histogram {
    FIGURES_WAITING,  /* from when a task could start until a worker claimed it, µs */
    FIGURES_DURATION, /* of an attempt, µs */
    FIGURES_CPU,      /* CPU time of an attempt, µs */
    FIGURES_MEMORY,   /* the most memory that an attempt used at once, bytes */
    FIGURES_HISTOGRAMS
};

#define FIGURES_BUCKETS 26 /* at most, of a histogram, with the one that has no bound */

/* The last bucket has no bound: its text is "inf", its number INT64_MAX. */
struct figures_bound {
    const char *text; /* seconds or bytes */
    int64_t most;     /* µs or bytes: values up to and including this */
};

/* The buckets of a histogram, the least first; *count: how many. */
const struct figures_bound *figures_bounds(enum figures_histogram histogram, size_t *count);

/* "waiting", "duration", "cpu" or "memory". */
const char *figures_name(enum figures_histogram histogram);

/* The bucket of a value. */
size_t figures_bucket(enum figures_histogram histogram, int64_t value);

#endif
