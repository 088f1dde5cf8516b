/*
 * What the command line and the environment say in place of the file: the queue's name, and the
 * Redis server by its URL.
 */
#ifndef LEAT_CONFIG_FILE_OVERRIDE_H
#define LEAT_CONFIG_FILE_OVERRIDE_H

#include "config/config.h"
#include "config/file/ini.h"
#include "config/report.h"

/* What the command line and the environment say in place of the file. */
struct config_given {
    const char *queue; /* the queue's name, or NULL: the file has it */
    const char *url;   /* of the Redis server (see config/types/url.h), or NULL: the file has it */
    const char *url_name;      /* where url was given, for messages */
    const char *password_file; /* of the password for url, or NULL: url has it, or there is none */
    bool with_keys;            /* also read the keys that sign tasks; few users may read them */
};

/* Sets what `given` says. A URL replaces all keys of [redis] that say where the server is and how
 * to log in to it; places then counts them as not given. Returns 0, or -1 after reporting what is
 * wrong. */
int override_apply(struct config *config, const struct config_given *given,
                   struct ini_places *places, struct report *report);

#endif
