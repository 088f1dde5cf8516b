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

#include "daemon/session/session.h"

struct ev_loop;
struct lists;

/* All arguments must outlive the object; config may be replaced. Without [intake] nothing is taken.
 * Returns NULL without memory. */
struct lists *lists_new(struct ev_loop *loop, const struct config *config, struct session *session,
                        const struct queue *queue);
void lists_set_config(struct lists *lists, const struct config *config);
void lists_free(struct lists *lists);

/* The session came up, so the function library is loaded; or it went down. */
void lists_up(struct lists *lists);
void lists_down(struct lists *lists);

/* Takes nothing from now on: the worker stops. */
void lists_close(struct lists *lists);

#endif
