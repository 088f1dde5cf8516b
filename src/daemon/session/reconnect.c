/*
 * The exit code for each kind of Redis error that retrying cannot mend.
 */
#include "daemon/session/reconnect.h"

#include <sysexits.h>

int reconnect_exit_code(enum redis_error error)
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
