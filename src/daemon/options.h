/*
 * The command line of leatd, with the defaults from the environment.
 */
#ifndef LEAT_DAEMON_OPTIONS_H
#define LEAT_DAEMON_OPTIONS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "config/file/source.h"

struct options {
    struct config_source source;
    char *path;      /* owned; of the file to load; NULL: the source needs no file */
    bool test;       /* -t */
    bool takes_over; /* --take-over: another leatd has started this one */
    char *program;   /* owned; the path of leatd's file, as it was when this process started */
    char *const *arguments; /* not owned */
};

/* Returns −1 to go on, or an exit code after printing help or an error. *options must be zeroed;
 * call options_free in any case. Call options_parse first: it removes a password from the
 * environment. */
int options_parse(int argc, char **argv, struct options *options);
void options_free(struct options *options);

/* Loads the configuration that the options name, with its key files. Returns as config_load. */
int options_load(const struct options *options, struct config **config, struct buffer *errors);

/* Logs these errors. Returns the exit code. */
int options_refuse(const struct buffer *errors, const char *message_id);

/* Prints to stdout. Returns an exit code. */
int options_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
