/* Works out the pause before the next try to connect. */
#include "redis/connection/backoff.h"

#include <stdlib.h>

double backoff_delay(const struct config_redis *config, unsigned failures)
{
    double cap = (double)config->backoff_cap_ms / 1000;
    double delay = (double)config->backoff_base_ms / 1000;
    for (unsigned i = 1; i < failures && delay < cap; i++) {
        delay *= 2;
    }
    delay = delay < cap ? delay : cap;
    return delay / 2 + delay / 2 * drand48();
}
