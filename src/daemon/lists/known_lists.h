/*
 * The lists that a worker knows, by name. Bounded: where it is full, the list in which nothing has
 * come for the longest time makes room, unless something is under way with it.
 */
#ifndef LEAT_DAEMON_LISTS_KNOWN_LISTS_H
#define LEAT_DAEMON_LISTS_KNOWN_LISTS_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/task.h"

#define KNOWN_MAX 10000 /* lists, beside those that are pinned */

struct lists;
struct take;

/* What lists.c and take.c keep of one. */
struct list {
    struct bytes name; /* owned */
    struct lists *lists;
    struct take *take;
    bool pinned;            /* named in the configuration: never forgotten */
    bool ready;             /* waits for its round */
    bool busy;              /* its round is under way */
    bool hot;               /* there was something in it: its round takes */
    bool woken;             /* its round was caused by a change */
    bool again;             /* it has changed during its round */
    bool failed;            /* in this round */
    int64_t taken;          /* in this round */
    unsigned told;          /* of its errors in the log: see take_tell */
    unsigned losses;        /* changes in a row of which nothing was left for this worker */
    int64_t lost_ns;        /* when the last was */
    ev_timer wait;          /* until the next look, after losses */
    struct list *next;      /* of those that are ready */
    struct list *up, *down; /* by age of what came: up is younger */
};

struct known_lists {
    void *root; /* of tsearch */
    struct list *youngest, *oldest;
    size_t count, pinned;
};

struct list *known_lists_find(const struct known_lists *known, struct bytes name);

/* Adds one that is not there, as the youngest; the name is copied. NULL: no memory, or no room. */
struct list *known_lists_add(struct known_lists *known, struct bytes name, bool pinned);

/* Something has come in it. */
void known_lists_touch(struct known_lists *known, struct list *list);

/* All of them; their timers must be stopped. */
void known_lists_clear(struct known_lists *known);

#endif
