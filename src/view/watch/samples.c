/*
 * Samples of a queue.
 */
#include "view/watch/samples.h"

#include <math.h>

#define HOUR_STEP_MS 10000   /* 360 points */
#define DAY_STEP_MS 240000   /* the same */
#define LONGEST_GAP_MS 60000 /* between the samples of a rate */

void samples_init(struct samples *samples)
{
    samples->hour.step_ms = HOUR_STEP_MS;
    samples->day.step_ms = DAY_STEP_MS;
}

static void read_rates(struct samples *samples, const struct status *status, int64_t now_ms,
                       double values[RING_VALUES])
{
    static const char *const names[SAMPLES_TOTALS] = {"total_succeeded", "total_retried",
                                                      "total_dead", "total_cancelled"};
    int64_t elapsed_ms = now_ms - samples->sampled_ms;
    bool fits = samples->sampled_ms > 0 && elapsed_ms > 0 && elapsed_ms < LONGEST_GAP_MS;

    for (size_t i = 0; i < SAMPLES_TOTALS; i++) {
        int64_t total = status_figure(status, names[i]);
        int64_t ended = total - samples->totals[i];
        values[RING_SUCCEEDED + i] =
            fits && ended >= 0 ? (double)ended * 1000 / (double)elapsed_ms : NAN;
        samples->totals[i] = total;
    }
    samples->sampled_ms = now_ms;
}

static double quantile_ms(const struct histogram *histogram, double share)
{
    return (double)histogram_quantile(histogram, share) / 1000;
}

static void read_percentiles(struct percentiles *percentiles, const struct status *status,
                             enum figures_histogram which, int64_t now_ms)
{
    int64_t kept_ms = status->lease_ms > LONGEST_GAP_MS ? status->lease_ms : LONGEST_GAP_MS;
    struct histogram now, since;
    bool fits;

    histogram_read(status, which, &now);
    since = now;
    fits = percentiles->last_ms > 0 && histogram_subtract(&since, &percentiles->last);
    if (fits && since.total == 0 && now_ms - percentiles->last_ms <= kept_ms) {
        return;
    }
    fits = fits && since.total > 0;
    percentiles->p50 = fits ? quantile_ms(&since, 0.5) : NAN;
    percentiles->p95 = fits ? quantile_ms(&since, 0.95) : NAN;
    percentiles->last = now;
    percentiles->last_ms = now_ms;
}

void samples_add(struct samples *samples, const struct status *status, int64_t now_ms)
{
    double values[RING_VALUES] = {
        [RING_READY] = (double)status_figure(status, "ready"),
        [RING_RUNNING] = (double)status_figure(status, "running"),
        [RING_DELAYED] =
            (double)(status_figure(status, "delayed") + status_figure(status, "retrying")),
        [RING_DEAD] = (double)status_figure(status, "dead"),
    };

    read_rates(samples, status, now_ms, values);
    read_percentiles(&samples->waiting, status, FIGURES_WAITING, now_ms);
    read_percentiles(&samples->duration, status, FIGURES_DURATION, now_ms);
    values[RING_WAITING_P50] = samples->waiting.p50;
    values[RING_WAITING_P95] = samples->waiting.p95;
    values[RING_DURATION_P50] = samples->duration.p50;
    values[RING_DURATION_P95] = samples->duration.p95;
    ring_add(&samples->hour, now_ms, values);
    ring_add(&samples->day, now_ms, values);
}
