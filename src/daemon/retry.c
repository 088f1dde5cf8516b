#include "daemon/retry.h"

#include <stdlib.h>
#include <sysexits.h>

double retry_delay(const struct config_redis *config, unsigned failures)
{
    double cap = (double)config->backoff_cap_ms / 1000;
    double delay = (double)config->backoff_base_ms / 1000;
    for (unsigned i = 1; i < failures && delay < cap; i++) {
        delay *= 2;
    }
    delay = delay < cap ? delay : cap;
    return delay / 2 + delay / 2 * drand48();
}

int retry_exit_code(enum redis_error error)
{
    switch (error) {
    case REDIS_ERROR_DENIED:
        return EX_NOPERM;
    case REDIS_ERROR_UNFIT:
    case REDIS_ERROR_FOREIGN:
    case REDIS_ERROR_CALLER:
        return EX_CONFIG;
    case REDIS_ERROR_NONE:
    case REDIS_ERROR_LOST:
    case REDIS_ERROR_LATER:
    case REDIS_ERROR_ROLE:
    case REDIS_ERROR_NO_WRITE:
    case REDIS_ERROR_NO_GROUP:
    case REDIS_ERROR_NO_LIBRARY:
    case REDIS_ERROR_OTHER:
        return 0;
    }
    return 0;
}
