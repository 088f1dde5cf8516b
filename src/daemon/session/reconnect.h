/*
 * Whether connections that failed are tried again.
 */
#ifndef LEAT_DAEMON_SESSION_RECONNECT_H
#define LEAT_DAEMON_SESSION_RECONNECT_H

#include "redis/error.h"

/* The sysexits code of an error that cannot mend itself before the first success; 0: it can. */
int reconnect_exit_code(enum redis_error error);

#endif
