/*
 * A progress bar on stderr.
 */
#include "cli/lib/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define INTERVAL_NS (CLOCK_NS_PER_S / 10)
#define BAR_WIDTH 30

void progress_begin(struct progress *progress)
{
    progress->shown = isatty(STDERR_FILENO) == 1;
    progress->started_ns = clock_boot_ns();
    progress->drawn_ns = progress->started_ns;
}

void progress_draw(struct progress *progress, uint64_t tasks, uint64_t done, uint64_t total)
{
    static const char full[] = "##############################";
    int64_t now_ns = progress->shown ? clock_boot_ns() : 0;
    double seconds, share;

    if (!progress->shown || now_ns - progress->drawn_ns < INTERVAL_NS) {
        return;
    }
    progress->drawn_ns = now_ns;
    seconds = (double)(now_ns - progress->started_ns) / (double)CLOCK_NS_PER_S;
    share = total > 0 ? (double)done / (double)total : 0;
    if (share > 1) {
        share = 1;
    }

    /* failures do not matter: the bar is only a hint */
    (void)fputs("\r\033[K", stderr);
    if (total > 0) {
        (void)fprintf(stderr, "[%-*.*s] %3.0f%%  ", BAR_WIDTH, (int)(share * BAR_WIDTH), full,
                      share * 100);
    }
    (void)fprintf(stderr, "%llu tasks, %.0f/s", (unsigned long long)tasks,
                  seconds > 0 ? (double)tasks / seconds : 0);
    (void)fflush(stderr);
}

void progress_end(const struct progress *progress)
{
    if (progress->shown) {
        (void)fputs("\r\033[K", stderr);
    }
}
