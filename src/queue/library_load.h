/*
 * Keeps the function library of a synchronous client's server as new as the built-in one.
 */
#ifndef LEAT_QUEUE_LIBRARY_LOAD_H
#define LEAT_QUEUE_LIBRARY_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "redis/server/client.h"

struct library_load {
    struct client_setup setup;
    bool allowed;        /* the library may be loaded */
    bool done;           /* this client has loaded it */
    int64_t old_version; /* of an older library that the client uses; 0: it uses none */
};

/* Opens a client as client_open does. If `library` allows it, the built-in library replaces a
 * missing or older one, now and whenever a call finds none; a newer one stays. An older one that
 * cannot be replaced is used, too; a call that it does not know fails with
 * REDIS_ERROR_OLD_LIBRARY. *load is set up here and must outlive the client. */
struct client *library_client_open(struct library_load *load, const struct config_redis *config,
                                   enum config_library library, enum redis_error *error, char *why,
                                   size_t why_size);

#endif
