/*
 * Setting the pause state, for leat pause, resume, drain and undrain.
 */
#ifndef LEAT_CLI_CONTROL_PAUSES_H
#define LEAT_CLI_CONTROL_PAUSES_H

#include <stdbool.h>

#include "cli/lib/cli.h"

/* Sets or clears a pause: "paused" for the queue, "drain:HOST" for a host, "drain:*" for all hosts.
 * *changed is false if it was so before. Returns 0, or an exit status after printing the error. */
int pauses_set(struct cli *cli, const char *name, bool paused, bool *changed);

#endif
