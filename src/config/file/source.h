/*
 * Where a queue's configuration comes from, as both programs' options and the environment say it:
 * a file, or no file but the queue's name and the URL of its Redis.
 *
 * An option counts before the environment, and the environment before the files of /etc/leat:
 *
 *     --redis URL     the server is that of URL; with -c FILE, FILE says all else
 *     -c FILE         the server is that of FILE, whatever LEAT_REDIS says
 *     LEAT_REDIS=URL  the server is that of URL
 *     -q QUEUE        /etc/leat/QUEUE.ini; with a URL no file is read: QUEUE is the queue's name
 *
 * A URL with -q reads no file, so that it means the same on every host.
 */
#ifndef LEAT_CONFIG_FILE_SOURCE_H
#define LEAT_CONFIG_FILE_SOURCE_H

#include "base/buffer.h"
#include "config/config.h"

#define CONFIG_SOURCE_VARIABLE "LEAT_REDIS"
#define CONFIG_SOURCE_ENDING ".ini"

/* Strings are NULL where nothing is given. */
struct config_source {
    const char *file;          /* -c FILE */
    const char *queue;         /* -q QUEUE */
    const char *url;           /* --redis URL */
    const char *password_file; /* --password-file FILE */
    char *variable;            /* the value of LEAT_REDIS; owned */
};

/* Takes LEAT_REDIS out of the environment, since it may hold a password: it is wiped there, and no
 * process that is started gets it. Returns 0, or -1 without memory. */
int config_source_open(struct config_source *source);

/* Wipes and frees the variable. */
void config_source_close(struct config_source *source);

/* Returns 0 if the options fit together, or -1 with the reason in why. */
int config_source_check(const struct config_source *source, struct buffer *why);

/* The URL that counts, or NULL: the file has the server. */
const char *config_source_url(const struct config_source *source);

/* The folder of the queues' files: /etc/leat, or LEAT_CONFIG_DIR. */
const char *config_source_folder(void);

/* The path of the queue's file there, for free(); NULL without memory. */
char *config_source_queue_path(const char *queue);

/* Loads the configuration from `path`; NULL: from no file, but queue and URL. Returns as
 * config_load. */
int config_source_load(const struct config_source *source, const char *path, bool with_keys,
                       struct config **config, struct buffer *errors);

#endif
