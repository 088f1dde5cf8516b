/*
 * The pause before a task is tried again.
 */
#ifndef LEAT_EXEC_JOB_RETRY_DELAY_H
#define LEAT_EXEC_JOB_RETRY_DELAY_H

#include <stdint.h>

#include "config/config.h"

/* Milliseconds until the next attempt after that one, by [retry]: exponential up to the cap, with
 * jitter. random: 0 to 1. At least 1, since 0 would mean "at once". */
int64_t retry_delay_ms(const struct config_retry *policy, int64_t attempt, double random);

#endif
