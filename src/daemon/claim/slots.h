/*
 * The worker's slots: which claimed task starts now, and how many more may be claimed. While tasks
 * are so short that a slot would idle between them, more tasks are claimed than there are free
 * slots: they wait here and start as soon as a slot is free. A task that has waited for
 * SLOT_WAIT_MS goes back, so that an idle worker gets it, and then nothing is claimed ahead for a
 * while.
 *
 * With batches a slot is one process for several tasks, and as many tasks are claimed for it. They
 * wait until the batch is full, or the first of them has waited for batch_wait. Tasks that must not
 * share a process (batch_may_share) start alone; if a claim brings more of those than there are
 * slots, most of them go back at once, and the next claims ask for less.
 *
 * With resident processes (exec/residents.h) a slot is one of them, which takes tasks one by one.
 */
#ifndef LEAT_DAEMON_CLAIM_SLOTS_H
#define LEAT_DAEMON_CLAIM_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/claim/host.h"
#include "daemon/claim/lease.h"
#include "daemon/report/outcomes.h"
#include "exec/runner.h"

struct slots;

/* The parts must outlive the object. Returns NULL without memory. */
struct slots *slots_new(struct worker_context *worker, struct runner *runner, struct lease *lease,
                        struct host *host, struct outcomes *outcomes);
/* The config was replaced. If the new one checks tasks in another way, waiting tasks go back. */
void slots_reload(struct slots *slots, const struct config *former);

/* Sets the queue's max_crashes, at each registration. If it is 1, nothing is claimed ahead: a task
 * that waited here when the worker crashed would be dead-lettered without having run. */
void slots_set_max_crashes(struct slots *slots, int64_t max_crashes);
void slots_free(struct slots *slots);

/* They return how many more tasks may start now, and how many more may be claimed ahead of that. */
size_t slots_room(const struct slots *slots);
size_t slots_ahead(const struct slots *slots);

/* Returns how many tasks may run at a time, at most. */
size_t slots_most(const struct slots *slots);

/* Returns true if a task runs alone: no other may start. */
bool slots_are_closed(const struct slots *slots);

/* Returns how many slots other daemons of this service use. */
size_t slots_of_others(const struct slots *slots);

/* Returns how many tasks run or wait for a slot, with those of other daemons of this service. */
size_t slots_taken(const struct slots *slots);

/* Returns whether enough tasks wait or run that no slot idles while outcomes and the next claim are
 * coalesced. */
bool slots_busy(const struct slots *slots);

/* Takes a task whose claim was sent at sent_ns: starts it, keeps it for the next free slot, or puts
 * it back. */
void slots_take(struct slots *slots, struct task *task, int64_t sent_ns);

/* Call it with each attempt that has ended. */
void slots_ended(struct slots *slots, const struct attempt *attempt);

/* Starts waiting tasks in free slots; if no task may start, puts them back. Call it once in each
 * turn of the loop. */
void slots_turn(struct slots *slots);

/* Adds the tokens of waiting tasks. */
void slots_tokens(const struct slots *slots, struct token_list *list);

/* Frees waiting tasks that are lost, and puts back those that are cancelled: Redis then ends
 * them. */
void slots_remove(struct slots *slots, const struct token_set *lost,
                  const struct token_set *cancelled);

/* Puts back all waiting tasks; running ones go on. */
void slots_put_back_waiting(struct slots *slots);

/* The session ended: frees all waiting tasks. The next registration does not name them, so they
 * return to the queue with nothing counted. */
void slots_down(struct slots *slots);

#endif
