/*
 * A progress bar on stderr, if stderr is a terminal.
 */
#ifndef LEAT_CLI_LIB_PROGRESS_H
#define LEAT_CLI_LIB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool shown; /* stderr is a terminal */
    int64_t started_ns, drawn_ns;
};

void progress_begin(struct progress *progress);

/* Draws the bar, at most ten times a second. total 0: unknown, so only the count is shown. */
void progress_draw(struct progress *progress, uint64_t tasks, uint64_t done, uint64_t total);

/* Clears the line. */
void progress_end(const struct progress *progress);

#endif
