/*
 * The state of a runner, and what its parts call of each other. Only runner.c and
 * runner_residents.c use it; runner.h is the interface for others.
 */
#ifndef LEAT_EXEC_RUNNER_STATE_H
#define LEAT_EXEC_RUNNER_STATE_H

#include <sys/queue.h>
#include <sys/resource.h>

#include "exec/attempt/child_state.h"
#include "exec/attempt/child_table.h"
#include "exec/attempt/orphan_scan.h"
#include "exec/residents.h"
#include "exec/runner_events.h"
#include "exec/slot_index.h"
#include "exec/tree/exits.h"

struct runner {
    struct child_host host;
    struct runner_events events;
    struct recipe *recipe; /* NULL: make it at the next start */
    bool homeless;         /* events.homeless was called for this config */
    char *worker;          /* for LEAT_WORKER; NULL: not set */
    struct rlimit files;
    struct exits exits; /* used by the first runner only */
    int mounts;         /* descriptor of the table of mounts; or -1 */
    struct fd_watch mounts_changed;
    LIST_HEAD(, attempt) attempts;
    size_t count;
    size_t processes; /* without resident ones */
    struct residents residents;
    struct runner *first_runner; /* this one, or the one that it runs beside */
    struct child_table *table;   /* the first runner's table of children whose leaders run */
    struct child_table own_table;
    struct child_table
        *settling; /* the first runner's table of children whose leaders have exited */
    struct child_table own_settling;
    struct orphan_scan orphan_scan;    /* used by the first runner only, for both tables */
    struct slot_indexes *slot_indexes; /* the first runner's */
    struct slot_indexes own_slot_indexes;
    char *scratch; /* owned; NULL: the first runner's is used */
};

/* ---- runner.c ---- */

void runner_list_add(struct runner *runner, struct attempt *attempt);
void runner_list_remove(struct runner *runner, struct attempt *attempt);

/* Makes the recipe if there is none, or if its user was missing on this host. Returns 0, or -1
 * without memory. */
int runner_make_recipe(struct runner *runner);

/* Starts the child, which has a slot index. Returns 0, or -1: the attempts that it has are over,
 * and it has no slot index any longer. */
int runner_launch(struct runner *runner, struct child *child);

/* ---- runner_residents.c ---- */

/* Sets up the resident processes of a runner whose host has been set up. */
void runner_init_residents(struct runner *runner);

#endif
