/*
 * Lists of producers that know nothing of leat, as [intake] names them: what comes in them is taken
 * into the queue at once, by leat_intake. A list that is empty is watched, not polled; lists with
 * the prefix are looked for (daemon/lists/seek.h). Several workers may do this for the same lists:
 * whoever is faster takes, and who was slower leaves a busy list to the others for a while.
 *
 * Nothing here knows the worker's slots: items become tasks of the queue, whoever runs them.
 */
#ifndef LEAT_DAEMON_LISTS_LISTS_H
#define LEAT_DAEMON_LISTS_LISTS_H

#include "daemon/session/session.h"

struct ev_loop;
struct lists;

/* All must outlive it; config may be replaced. Does nothing where [intake] is empty. Returns NULL
 * without memory. */
struct lists *lists_new(struct ev_loop *loop, const struct config *config, struct session *session,
                        const struct queue *queue);
void lists_set_config(struct lists *lists, const struct config *config);
void lists_free(struct lists *lists);

/* With the session: the function library is there. */
void lists_up(struct lists *lists);
void lists_down(struct lists *lists);

/* Takes nothing any more: the worker stops. */
void lists_close(struct lists *lists);

#endif
