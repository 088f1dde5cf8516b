/*
 * What leat pause, resume, drain and undrain share: they close and open the queue's gates.
 */
#ifndef LEAT_CLI_CONTROL_PAUSES_H
#define LEAT_CLI_CONTROL_PAUSES_H

#include <stdbool.h>

#include "cli/lib/cli.h"

enum { PAUSES_OPTION_WAIT = 256, PAUSES_OPTION_JSON, PAUSES_OPTION_ALL };

struct pauses_options {
    bool wait, all, json;
};

/* The words that are left begin at optind. Returns false with *status set where that is all. */
bool pauses_read_options(struct cli *cli, int argc, char **argv, const struct option *table,
                         struct pauses_options *options, int *status);

/* Closes or opens the gate of that name; *changed is false where it was so already. Returns 0 or an
 * exit status. */
int pauses_set(struct cli *cli, const char *name, bool closed, bool *changed);

#endif
