/*
 * Whether connections that failed are tried again.
 */
#ifndef LEAT_DAEMON_RETRY_H
#define LEAT_DAEMON_RETRY_H

#include "queue/error.h"

/* The sysexits code of an error that cannot mend itself before the first success; 0: it can. */
int retry_exit_code(enum redis_error error);

#endif
