/*
 * Taking in what is in lists, in rounds: one takes what there is of a list, and asks what is left
 * while Redis watches it for the next change. Lists take turns, a few at a time; all wait while the
 * queue is full or Redis takes no writes.
 */
#ifndef LEAT_DAEMON_LISTS_TAKE_H
#define LEAT_DAEMON_LISTS_TAKE_H

#include "daemon/lists/known_lists.h"
#include "daemon/lists/watch.h"
#include "daemon/session/session.h"

struct take;

struct take_events {
    /* A round has ended: hot, taken, failed, woken and again of the list tell how. Where it is hot,
     * another round follows of itself. */
    void (*ended)(void *context, struct list *list);
    void *context;
};

/* All must outlive it; config may be replaced. Returns NULL without memory. */
struct take *take_new(struct ev_loop *loop, const struct config *config, struct session *session,
                      const struct queue *queue, struct watch *watch, struct known_lists *known,
                      const struct take_events *events);
void take_set_config(struct take *take, const struct config *config);
void take_free(struct take *take);

/* The list gets a round, unless it waits for one or has one. */
void take_list(struct take *take, struct list *list);

/* Begins what rounds it can; after calls of take_list. */
void take_go_on(struct take *take);

/* The watch has gone down: no round is under way or wanted any more. */
void take_drop(struct take *take);

/* Whether the list's name begins with [intake] prefix. */
bool take_has_prefix(const struct config_intake *intake, struct bytes name);

/* Tells in the log, once for each list, why something is not taken in. A library that is missing is
 * the session's to load. told: the list's, or another place that remembers. */
void take_tell(struct take *take, struct bytes name, unsigned *told, const char *error);

#endif
