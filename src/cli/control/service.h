/*
 * leat init --service: gives a queue a systemd service with a user of its own.
 */
#ifndef LEAT_CLI_CONTROL_SERVICE_H
#define LEAT_CLI_CONTROL_SERVICE_H

#include <stdbool.h>

struct service_options {
    const char *queue;
    bool shared; /* let it run as the user leat, which queues have in common */
    bool move;   /* stop a running leatd to change its user */
};

/* Makes the user, the drop-in of the unit and a first configuration, as far as they are missing.
 * Returns 0, or an exit status after printing the error. */
int service_make(const struct service_options *options);

#endif
