/*
 * Whether and when connections that failed are tried again.
 */
#ifndef LEAT_DAEMON_RETRY_H
#define LEAT_DAEMON_RETRY_H

#include "config/config.h"
#include "queue/error.h"

/* Seconds until the next try, after so many failures: exponential up to the cap, with jitter, but
 * never at once. */
double retry_delay(const struct config_redis *config, unsigned failures);

/* The sysexits code of an error that cannot mend itself before the first success; 0: it can. */
int retry_exit_code(enum redis_error error);

#endif
