/*
 * Parts that leat pause, resume, drain and undrain share: options, and setting the pause state.
 */
#ifndef LEAT_CLI_CONTROL_PAUSES_H
#define LEAT_CLI_CONTROL_PAUSES_H

#include <stdbool.h>

#include "cli/lib/cli.h"

enum { PAUSES_OPTION_WAIT = 256, PAUSES_OPTION_JSON, PAUSES_OPTION_ALL };

struct pauses_options {
    bool wait, all, json;
};

/* Reads the options. Operands begin at optind. Returns false with *status if the command is
 * finished. */
bool pauses_read_options(struct cli *cli, int argc, char **argv, const struct option *table,
                         struct pauses_options *options, int *status);

/* Sets or clears a pause: "paused" for the queue, "drain:HOST" for a host, "drain:*" for all hosts.
 * *changed is false if it was so before. Returns 0, or an exit status after printing the error. */
int pauses_set(struct cli *cli, const char *name, bool paused, bool *changed);

#endif
