/* Works out the pause before a retry: a pure function. */
#include "exec/job/retry_delay.h"

#include <math.h>

int64_t retry_delay_ms(const struct config_retry *policy, int64_t attempt, double random)
{
    /* doubles do not overflow: a power that is too large becomes infinite and is capped */
    double cap = (double)policy->cap_ms;
    double delay = (double)policy->base_ms * pow(policy->factor, (double)(attempt - 1));
    if (!(delay < cap)) {
        delay = cap;
    }

    if (policy->jitter == CONFIG_JITTER_FULL) {
        delay *= random;
    }
    return delay < 1 ? 1 : (int64_t)delay;
}
