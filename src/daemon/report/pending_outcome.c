/*
 * Outcomes that wait to be settled: linked lists, and their encoding for leat_finish.
 */
#include "daemon/report/pending_outcome.h"

#include <stdlib.h>

#include "queue/calls.h"

/* ---- lists ---- */

void pending_outcome_list_init(struct pending_outcome_list *list)
{
    TAILQ_INIT(&list->list);
    list->count = 0;
}

void pending_outcome_list_append(struct pending_outcome_list *list, struct pending_outcome *pending)
{
    TAILQ_INSERT_TAIL(&list->list, pending, link);
    list->count++;
}

void pending_outcome_list_remove(struct pending_outcome_list *list, struct pending_outcome *pending)
{
    TAILQ_REMOVE(&list->list, pending, link);
    list->count--;
}

void pending_outcome_list_put_back(struct pending_outcome_list *to,
                                   struct pending_outcome_list *from)
{
    struct pending_outcome *pending;
    TAILQ_FOREACH(pending, &from->list, link) {
        pending->again = true;
    }
    TAILQ_CONCAT(&from->list, &to->list, link);
    TAILQ_CONCAT(&to->list, &from->list, link);
    to->count += from->count;
    from->count = 0;
}

void pending_outcome_list_free(struct pending_outcome_list *list)
{
    while (list->count > 0) {
        struct pending_outcome *first = TAILQ_FIRST(&list->list);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that the list shrinks */
        pending_outcome_list_remove(list, first);
        pending_outcome_free(first);
    }
}

/* ---- one outcome ---- */

struct pending_outcome *pending_outcome_new(void)
{
    return calloc(1, sizeof(struct pending_outcome));
}

void pending_outcome_free(struct pending_outcome *pending)
{
    if (pending) {
        if (pending->attempt) {
            attempt_free(pending->attempt);
        }
        free(pending->token);
        free(pending);
    }
}

const char *pending_outcome_token(const struct pending_outcome *pending)
{
    return pending->attempt ? pending->attempt->task->token : pending->token;
}

/* Buffers for texts that the call points to. */
struct texts {
    char status[32], usage[USAGE_TEXT];
};

static void describe_attempt(const struct pending_outcome *pending, struct queue_result *result,
                             struct texts *texts)
{
    const struct attempt *attempt = pending->attempt;
    result->duration_us = attempt->duration_us;
    if (result->outcome != VERDICT_RELEASE) {
        ending_status(&attempt->ending, texts->status, sizeof texts->status);
        result->status = texts->status;
    }
    if (result->outcome == VERDICT_RETRY || result->outcome == VERDICT_DEAD) {
        result->cause = cause_name(attempt->ending.cause);
        result->reason = attempt->reason;
    }

    /* the last attempt's output tails and usage go into the dead letter and the result */
    bool last = result->outcome == VERDICT_SUCCESS || result->outcome == VERDICT_DEAD;
    result->result_ttl_ms = last ? pending->ttl_ms : 0;
    if (result->outcome == VERDICT_DEAD || result->result_ttl_ms > 0) {
        result->stdout_tail = attempt->stdout_tail;
        result->stderr_tail = attempt->stderr_tail;
        usage_format(&attempt->usage, texts->usage, sizeof texts->usage);
        result->usage = texts->usage;
    }
}

void pending_outcome_add_to(struct command *command, const struct pending_outcome *pending)
{
    struct queue_result result = {.token = pending_outcome_token(pending),
                                  .outcome = pending->outcome.verdict,
                                  .cause = "",
                                  .status = "",
                                  .reason = "",
                                  .usage = "",
                                  .delay_ms = pending->outcome.delay_ms,
                                  .again = pending->again,
                                  .unclaimed = pending->unclaimed};
    struct texts texts;
    if (pending->attempt) {
        describe_attempt(pending, &result, &texts);
    }
    queue_finish_add(command, &result);
}
