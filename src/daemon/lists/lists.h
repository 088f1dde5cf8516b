/*
 * Producer lists of [intake]: plain Redis lists whose items leat_intake moves into the queue as
 * tasks at once. An empty list is watched, not polled; lists with the prefix are discovered
 * (daemon/lists/seek.h). Several workers may serve the same lists: the fastest takes the items, and
 * a slower one leaves a busy list to the others for a while.
 *
 * The module does not know the worker's slots: any worker of the queue may run the tasks.
 */
#ifndef LEAT_DAEMON_LISTS_LISTS_H
#define LEAT_DAEMON_LISTS_LISTS_H

#include "daemon/session/worker_context.h"

struct lists;

/* Without [intake] nothing is taken. Returns NULL without memory. */
struct lists *lists_new(struct worker_context *worker);

/* The config was replaced. */
void lists_reload(struct lists *lists, const struct config *former);
void lists_free(struct lists *lists);

/* The session came up, so the function library is loaded, or the worker waits no longer; or the
 * session went down. */
void lists_up(struct lists *lists);
void lists_down(struct lists *lists);

/* Takes nothing from now on: the worker stops. */
void lists_close(struct lists *lists);

#endif
