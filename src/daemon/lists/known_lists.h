/*
 * The producer lists that a worker knows, by name. The number is bounded: when it is reached, a new
 * list replaces the one that has been empty for the longest time and has no round, backoff or place
 * in line.
 */
#ifndef LEAT_DAEMON_LISTS_KNOWN_LISTS_H
#define LEAT_DAEMON_LISTS_KNOWN_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/timer.h"
#include "queue/task.h"

#define KNOWN_MAX 10000 /* lists, not counting pinned ones */

struct lists;
struct take;

/* A known list; lists.c and take.c keep their state here. */
struct list {
    struct bytes name; /* owned */
    struct lists *lists;
    struct take *take;
    bool pinned;            /* named in the configuration: never forgotten */
    bool queued;            /* waits for its round */
    bool busy;              /* its round is under way */
    bool has_items;         /* the next round takes items, not only looks at the length */
    bool woken;             /* a change started this round */
    bool changed;           /* it changed during its round */
    bool failed;            /* in this round */
    int64_t taken;          /* items, in this round */
    unsigned logged;        /* kinds of errors that are in the log: see take_log_error */
    unsigned losses;        /* changes in a row after which other workers had taken everything */
    int64_t lost_ns;        /* when the last loss was */
    struct timer wait;      /* the backoff after losses */
    TAILQ_ENTRY(list) line; /* of lists for a round */
    TAILQ_ENTRY(list) age;  /* of the last item */
};

struct known_lists {
    void *root;                       /* of tsearch */
    TAILQ_HEAD(list_ages, list) ages; /* the youngest first */
    size_t count, pinned;
};

/* Makes it empty. */
void known_lists_init(struct known_lists *known);

struct list *known_lists_find(const struct known_lists *known, struct bytes name);

/* Adds a list that is not known yet, as the youngest. The name is copied. Returns NULL without
 * memory or room. */
struct list *known_lists_add(struct known_lists *known, struct bytes name, bool pinned);

/* Makes the list the youngest: an item has come. */
void known_lists_touch(struct known_lists *known, struct list *list);

/* Forgets all lists; their timers must be stopped. */
void known_lists_clear(struct known_lists *known);

#endif
