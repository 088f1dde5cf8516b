/*
 * Decides which errors a worker does not retry at its start.
 */
#ifndef LEAT_DAEMON_SESSION_RECONNECT_H
#define LEAT_DAEMON_SESSION_RECONNECT_H

#include "redis/error.h"

/* Returns the sysexits code for an error that only an operator can mend, to be used before the
 * first success; 0: retry. */
int reconnect_exit_code(enum redis_error error);

#endif
