/*
 * The command line of leat-board.
 */
#ifndef LEAT_BOARD_OPTIONS_H
#define LEAT_BOARD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "board/listener.h"

#define OPTIONS_QUEUES 256 /* more cannot be given */

struct options {
    const char *queues[OPTIONS_QUEUES]; /* none: all of /etc/leat */
    size_t queue_count;
    struct listener_address listen;
    char token_file[256];
    bool no_token;
    bool url; /* print the address and exit */
};

/* Returns -1 to go on, or an exit code; then it has printed what was asked for, or the error. */
int options_parse(int argc, char **argv, struct options *options);

#endif
