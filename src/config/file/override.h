/*
 * Settings of the command line and the environment that take precedence over the file: the queue's
 * name, and the URL of the Redis server.
 */
#ifndef LEAT_CONFIG_FILE_OVERRIDE_H
#define LEAT_CONFIG_FILE_OVERRIDE_H

#include "config/config.h"
#include "config/file/ini.h"
#include "config/report.h"

/* These settings; NULL: not given. */
struct config_given {
    const char *queue;         /* the queue's name */
    const char *url;           /* URL of the Redis server, see config/types/url.h */
    const char *url_name;      /* where url comes from, for messages */
    const char *password_file; /* file with the password for url; NULL: url may have it */
    bool with_keys;            /* also read the keys that sign tasks, which few users may read */
    bool skip_credentials;     /* do not read credentials, which only the service has */
};

/* Applies `given`. A URL replaces all keys of [redis] for the server and the login, and removes
 * their line numbers from lines. Returns 0, or reports the error and returns -1. */
int override_apply(struct config *config, const struct config_given *given, struct key_lines *lines,
                   struct report *report);

#endif
