/*
 * Splits batches that failed as a whole, and keeps the order in which their tasks run again.
 */
#include "exec/attempt/halves.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "exec/attempt/child.h"

static enum verdict verdict_on(const struct child *child, const struct attempt *attempt)
{
    return outcome_decide(&child->host->config->retry, &attempt->ending, 0).verdict;
}

static bool has_lease(const struct attempt *attempt)
{
    return attempt->lease_deadline_ns == 0 || clock_boot_ns() < attempt->lease_deadline_ns;
}

/* Returns whether the task failed only because the process did that it shared, and may run again.
 * It may have been told to end after the process had ended. */
static bool failed_with_batch(const struct child *child, const struct attempt *attempt)
{
    if (child->count == 1 || attempt->has_verdict || attempt->told_to_end || !has_lease(attempt)) {
        return false;
    }
    enum verdict verdict = verdict_on(child, attempt);
    return verdict == VERDICT_RETRY || verdict == VERDICT_DEAD;
}

/* Returns whether the check has to look before the task runs again. */
static bool needs_check(const struct child *child, const struct attempt *attempt)
{
    const struct config_task *config = &child->host->config->task;
    task_note_ends(attempt->task, cause_name(attempt->ending.cause));
    return config->check && (attempt->task->ends & (unsigned)config->check_after) != 0;
}

/* Moves the task to a new attempt. Returns NULL without memory. */
static struct attempt *wait_again(struct attempt *ended)
{
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (attempt) {
        const struct claimed_task claimed = {ended->task, ended->lease_deadline_ns, ended->renewal};
        attempt_init(attempt, &claimed);
        (void)snprintf(attempt->batch, sizeof attempt->batch, "%s", ended->batch);
        ended->task = NULL;
    }
    return attempt;
}

static struct attempt *end_of_half(struct attempt *first)
{
    struct attempt *end = first->after;
    while (end && end->half == HALF_WITHIN) {
        end = end->after;
    }
    return end;
}

/* Halves the first of those that wait. The first half is the smaller one: so one bad task of n
 * takes at most 2 log2(n) further starts. */
static void halve(struct attempt *first)
{
    const struct attempt *end = end_of_half(first);
    struct attempt *middle = first;
    size_t count = 0;
    for (const struct attempt *one = first; one != end; one = one->after) {
        middle = ++count % 2 == 0 ? middle->after : middle;
    }
    middle->half = HALF_SECOND;
    first->half = HALF_FIRST;
}

static bool all_succeeded(struct child *child)
{
    bool all = true;
    for (size_t i = 0; i < child->count; i++) {
        all = all && verdict_on(child, child_attempt(child, i)) == VERDICT_SUCCESS;
    }
    return all;
}

struct attempt *halves_split(struct child *child)
{
    struct attempt *rest = child->waiting, *first = NULL, **end = &first;
    bool is_second = rest && rest->half == HALF_SECOND;
    if (is_second && all_succeeded(child)) {
        halve(rest); /* the fault is most likely in this half: it does not run as a whole */
        return rest;
    }
    if (is_second) {
        rest->half = HALF_FIRST;
    }
    for (size_t i = 0; i < child->count && !child->outdated; i++) {
        struct attempt *ended = child_attempt(child, i);
        if (failed_with_batch(child, ended) && !needs_check(child, ended)) {
            *end = wait_again(ended);
            end = *end ? &(*end)->after : end;
        }
    }
    *end = rest;
    if (first != rest) {
        halve(first);
    }
    return first;
}

bool halves_may_run(const struct child *child)
{
    bool runs = child->attempt.ending.cause != CAUSE_HOST;
    for (size_t i = 1; i < child->count; i++) {
        runs = runs && child->others[i - 1]->ending.cause != CAUSE_HOST;
    }
    return runs;
}

size_t halves_first(struct attempt *waiting, struct claimed_task *tasks, struct attempt **rest)
{
    size_t count = 0;
    *rest = end_of_half(waiting);
    for (const struct attempt *one = waiting; one != *rest; one = one->after) {
        tasks[count++] = (struct claimed_task){one->task, one->lease_deadline_ns, one->renewal};
    }
    return count;
}

void halves_remove(struct attempt **waiting, const struct attempt *attempt)
{
    struct attempt **link = waiting, *after = attempt->after;
    while (*link != attempt) {
        link = &(*link)->after;
    }
    if (after && after->half == HALF_WITHIN) {
        after->half = attempt->half;
    }
    *link = after;
}
