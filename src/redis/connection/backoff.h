/*
 * How long to wait before a connection that failed is tried again.
 */
#ifndef LEAT_REDIS_CONNECTION_BACKOFF_H
#define LEAT_REDIS_CONNECTION_BACKOFF_H

#include "config/config.h"

/* Seconds until the next try, after so many failures: exponential up to the cap, with jitter, so
 * that no two keep step, but never at once. The caller has seeded drand48. */
double backoff_delay(const struct config_redis *config, unsigned failures);

#endif
