/*
 * Moves items from lists into the queue, in rounds. A round takes the items of one list (if there
 * are any), then asks for its length while Redis watches it for the next change. Lists take turns,
 * and a few rounds run at a time. All rounds wait while the queue is full or Redis accepts no
 * writes.
 */
#ifndef LEAT_DAEMON_LISTS_TAKE_H
#define LEAT_DAEMON_LISTS_TAKE_H

#include "daemon/lists/known_lists.h"
#include "daemon/lists/watch.h"

struct take;

struct take_events {
    /* A round has ended; the list's has_items, taken, failed, woken and changed describe it. If the
     * list still has items, it is in line for the next round. */
    void (*ended)(void *context, struct list *list);
    void *context;
};

/* watch and known must outlive the object. Returns NULL without memory. */
struct take *take_new(struct worker_context *worker, struct watch *watch, struct known_lists *known,
                      const struct take_events *events);
void take_reload(struct take *take);
void take_free(struct take *take);

/* Puts the list in line for a round, unless it is in line or its round is under way. */
void take_schedule(struct take *take, struct list *list);

/* Starts as many rounds as it can. Call it after take_schedule. */
void take_start_rounds(struct take *take);

/* The watch went down: forgets all rounds, under way or in line. */
void take_reset(struct take *take);

/* Returns whether the list's name begins with [intake] prefix. */
bool take_has_prefix(const struct config_intake *intake, struct bytes name);

/* Logs why a list is not taken: as a warning once for each kind of error, at debug level after
 * that. A missing function library is not logged: the session loads it. logged: remembers the
 * kinds, in the list or elsewhere. */
void take_log_error(struct take *take, struct bytes name, unsigned *logged, const char *error);

#endif
