#include "daemon/beat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

#define RATE_MEMORY_S 60.0
#define RATE_LEAST_S 0.5

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
}

int beat_init(struct beat *beat)
{
    uint64_t nonce;
    *beat = (struct beat){.started_wall_ms = clock_wall_ms(), .counted_ns = clock_boot_ns()};
    if (gethostname(beat->host, sizeof beat->host) ||
        getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce) {
        return -1;
    }
    beat->host[sizeof beat->host - 1] = '\0';
    for (char *at = beat->host; *at; at++) {
        *at = is_plain(*at) ? *at : '_';
    }
    srand48((long)(nonce >> 32)); /* jitter: workers started together must not act in step */
    int size = snprintf(beat->consumer, sizeof beat->consumer, "%s:%ld:%08" PRIx32, beat->host,
                        (long)getpid(), (uint32_t)nonce);
    errno = ENAMETOOLONG;
    return size > 0 && (size_t)size < sizeof beat->consumer ? 0 : -1;
}

void beat_free(struct beat *beat)
{
    buffer_free(&beat->text);
}

void beat_count(struct beat *beat, enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_SUCCESS:
        beat->succeeded++;
        return;
    case VERDICT_RETRY:
        beat->retried++;
        return;
    case VERDICT_DEAD:
        beat->dead++;
        return;
    case VERDICT_RELEASE:
        beat->released++;
        return;
    case VERDICT_CANCELLED:
        beat->cancelled++;
        return;
    }
}

static void update_rate(struct beat *beat)
{
    int64_t now_ns = clock_boot_ns();
    uint64_t ended = beat->succeeded + beat->retried + beat->dead + beat->cancelled;
    double span = (double)(now_ns - beat->counted_ns) / (double)CLOCK_NS_PER_S;
    if (span > RATE_LEAST_S) {
        double share = span / (span + RATE_MEMORY_S);
        beat->rate += ((double)(ended - beat->counted) / span - beat->rate) * share;
        beat->counted = ended;
        beat->counted_ns = now_ns;
    }
}

const char *beat_text(struct beat *beat, size_t slots, size_t running, const char *state)
{
    update_rate(beat);
    buffer_clear(&beat->text);
    (void)buffer_printf(&beat->text, /* a failure stays marked */
                        "{\"host\":\"%s\",\"pid\":%ld,\"version\":\"" LEAT_VERSION
                        "\",\"slots\":%zu,\"running\":%zu,\"state\":\"%s\",\"started_ms\":%" PRId64
                        ",\"succeeded\":%" PRIu64 ",\"retried\":%" PRIu64 ",\"dead\":%" PRIu64
                        ",\"cancelled\":%" PRIu64 ",\"rate\":%.3f}",
                        beat->host, (long)getpid(), slots, running, state, beat->started_wall_ms,
                        beat->succeeded, beat->retried, beat->dead, beat->cancelled, beat->rate);
    (void)buffer_append(&beat->text, "", 1); /* as above */
    return beat->text.failed ? NULL : beat->text.data;
}
