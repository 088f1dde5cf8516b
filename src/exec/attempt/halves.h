/*
 * The halves of a failed batch. If the process of a batch fails as a whole, its tasks run again in
 * two halves, one after the other, and each half that fails is halved again, until a task runs
 * alone. All of that is one attempt, in one slot. Tasks that wait for their half are attempts in
 * the state JOB_CLAIMED, in a list that the child has whose process runs meanwhile.
 */
#ifndef LEAT_EXEC_ATTEMPT_HALVES_H
#define LEAT_EXEC_ATTEMPT_HALVES_H

#include <stdbool.h>
#include <stddef.h>

#include "exec/attempt/child_state.h"

/* Decides for a child that is over which tasks run next. If its process failed as a whole, the
 * tasks that failed with it move to new attempts, in two halves before those that wait already.
 * Their former attempts then have no task, and the new ones no child. Returns all that wait; NULL:
 * none.
 *
 * A task stays in its attempt, which has failed, if it ran alone, if the process has reported its
 * result, if the config was replaced meanwhile, without memory, or if [task] check has to look
 * first, which it does for retries. */
struct attempt *halves_split(struct child *child);

/* Returns false if the host could not run the child, so that those that wait have to go back. */
bool halves_may_run(const struct child *child);

/* Fills `tasks`, which has room for CONFIG_BATCH_MOST, with the first half of those that wait.
 * Returns how many they are; sets *rest to those that wait behind them. */
size_t halves_first(struct attempt *waiting, struct claimed_task *tasks, struct attempt **rest);

/* Removes an attempt from those that wait. */
void halves_remove(struct attempt **waiting, const struct attempt *attempt);

#endif
