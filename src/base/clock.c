/* Reads the two clocks. */
#include "base/clock.h"

#include <time.h>

static struct timespec read_clock(clockid_t id)
{
    struct timespec now = {0};

    /* both clocks exist on every Linux that leat runs on, so this cannot fail */
    (void)clock_gettime(id, &now);
    return now;
}

int64_t clock_boot_ns(void)
{
    struct timespec now = read_clock(CLOCK_BOOTTIME);

    return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

int64_t clock_wall_ms(void)
{
    struct timespec now = read_clock(CLOCK_REALTIME);

    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / CLOCK_NS_PER_MS;
}
