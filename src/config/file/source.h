/*
 * Where a queue's configuration comes from, by the options of both programs and the environment:
 * a file, or only the queue's name and the URL of its Redis.
 *
 * An option takes precedence over the environment, and that over the files of /etc/leat:
 *
 *     --redis URL     the server is that of URL; with -c FILE, all else is from FILE
 *     -c FILE         the server is that of FILE, even if LEAT_REDIS is set
 *     LEAT_REDIS=URL  the server is that of URL
 *     -q QUEUE        /etc/leat/QUEUE.ini; with a URL no file is read: QUEUE is the queue's name
 *
 * A URL with -q reads no file, so that it means the same on every host.
 */
#ifndef LEAT_CONFIG_FILE_SOURCE_H
#define LEAT_CONFIG_FILE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"

#define CONFIG_SOURCE_VARIABLE "LEAT_REDIS"
#define CONFIG_SOURCE_ENDING ".ini"

/* Strings are NULL if not given. */
struct config_source {
    const char *file;          /* -c FILE */
    const char *queue;         /* -q QUEUE */
    const char *url;           /* --redis URL */
    const char *password_file; /* --password-file FILE */
    char *variable;            /* the value of LEAT_REDIS; owned */
    bool skip_credentials;     /* as in struct config_given */
};

/* Takes LEAT_REDIS from the environment and wipes it there, since it may contain a password: no
 * child process gets it. Returns 0, or -1 if memory ran out. */
int config_source_open(struct config_source *source);

/* Sets the variable, and takes ownership of it. */
void config_source_set_variable(struct config_source *source, char *value);

/* Wipes and frees the variable. */
void config_source_close(struct config_source *source);

/* Returns 0 if the options fit together, or -1 with the reason in why. */
int config_source_check(const struct config_source *source, struct buffer *why);

/* The URL that takes precedence, or NULL if the file names the server. */
const char *config_source_url(const struct config_source *source);

/* The folder of the queues' files; LEAT_CONFIG_DIR replaces it. */
#define CONFIG_SOURCE_FOLDER LEAT_SYSCONFDIR "/leat"
const char *config_source_folder(void);

/* The path of the queue's file there, which the caller frees; NULL if memory ran out. */
char *config_source_queue_path(const char *queue);

/* Writes the name of the systemd unit that runs the queue of a file in that folder. Returns 0, or
 * -1 for other files, for NULL, and if the name does not fit. */
int config_source_unit(const char *path, char *unit, size_t size);

/* Loads the configuration from `path`, or from queue and URL alone if path is NULL. Returns like
 * config_load. */
int config_source_load(const struct config_source *source, const char *path, bool with_keys,
                       struct config **config, struct buffer *errors);

#endif
