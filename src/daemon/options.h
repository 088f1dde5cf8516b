/*
 * The command line of leatd, with what the environment adds to it.
 */
#ifndef LEAT_DAEMON_OPTIONS_H
#define LEAT_DAEMON_OPTIONS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "config/file/source.h"

struct options {
    struct config_source source;
    char *path; /* of the file to load; NULL: none, the source says it all; owned */
    bool test;  /* -t */
};

/* Returns -1 to go on, or an exit code after printing help or what is wrong. *options, which is
 * zeroed, is for options_free in any case. Call it first: it takes a password out of the
 * environment. */
int options_parse(int argc, char **argv, struct options *options);
void options_free(struct options *options);

/* Loads the configuration that they name, with keys. Returns as config_load. */
int options_load(const struct options *options, struct config **config, struct buffer *errors);

/* Prints to stdout. Returns an exit code. */
int options_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
