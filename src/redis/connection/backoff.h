/*
 * How long to wait before a failed connection is tried again.
 */
#ifndef LEAT_REDIS_CONNECTION_BACKOFF_H
#define LEAT_REDIS_CONNECTION_BACKOFF_H

#include "config/config.h"

/* Seconds until the next try after that many failures: exponential up to the cap, with jitter so
 * that workers do not keep step, and never 0. The caller has seeded drand48. */
double backoff_delay(const struct config_redis *config, unsigned failures);

#endif
