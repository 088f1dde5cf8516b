#include "daemon/report/pending_outcome.h"

#include <stdlib.h>

/* ---- lists ---- */

void pending_outcome_list_init(struct pending_outcome_list *list)
{
    list->head.next = list->head.previous = &list->head;
    list->count = 0;
}

void pending_outcome_list_append(struct pending_outcome_list *list, struct pending_outcome *result)
{
    result->next = &list->head;
    result->previous = list->head.previous;
    result->previous->next = result;
    list->head.previous = result;
    list->count++;
}

void pending_outcome_list_remove(struct pending_outcome_list *list, struct pending_outcome *result)
{
    result->previous->next = result->next;
    result->next->previous = result->previous;
    list->count--;
}

void pending_outcome_list_put_back(struct pending_outcome_list *to,
                                   struct pending_outcome_list *from)
{
    while (from->count > 0) {
        struct pending_outcome *last = from->head.previous;
        pending_outcome_list_remove(from, last);
        last->again = true;
        last->next = to->head.next;
        last->previous = &to->head;
        last->next->previous = last;
        to->head.next = last;
        to->count++;
    }
}

void pending_outcome_list_free(struct pending_outcome_list *list)
{
    while (list->count > 0) {
        struct pending_outcome *first = list->head.next;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that the list closes up */
        pending_outcome_list_remove(list, first);
        pending_outcome_free(first);
    }
}

/* ---- one result ---- */

struct pending_outcome *pending_outcome_new(void)
{
    return calloc(1, sizeof(struct pending_outcome));
}

void pending_outcome_free(struct pending_outcome *result)
{
    if (result) {
        if (result->attempt) {
            attempt_free(result->attempt);
        }
        free(result->token);
        free(result);
    }
}

const struct attempt *pending_outcome_attempt(const struct pending_outcome *result)
{
    return result->attempt;
}

bool pending_outcome_sent_before(const struct pending_outcome *result)
{
    return result->again;
}

enum verdict pending_outcome_verdict(const struct pending_outcome *result)
{
    return result->outcome.verdict;
}

const char *pending_outcome_token(const struct pending_outcome *result)
{
    return result->attempt ? result->attempt->task->token : result->token;
}

static enum queue_outcome queue_outcome_of(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_SUCCESS:
        return QUEUE_SUCCESS;
    case VERDICT_RETRY:
        return QUEUE_RETRY;
    case VERDICT_DEAD:
        return QUEUE_DEAD;
    case VERDICT_RELEASE:
        return QUEUE_RELEASE;
    case VERDICT_CANCELLED:
        return QUEUE_CANCELLED;
    }
    return QUEUE_RELEASE;
}

/* Texts of numbers that go into the call. */
struct texts {
    char status[32], usage[USAGE_TEXT];
};

static void tell_attempt(const struct pending_outcome *result, struct queue_result *told,
                         struct texts *texts)
{
    const struct attempt *attempt = result->attempt;
    told->duration_us = attempt->duration_us;
    if (told->outcome != QUEUE_RELEASE) {
        ending_status(&attempt->ending, texts->status, sizeof texts->status);
        told->status = texts->status;
    }
    if (told->outcome == QUEUE_RETRY || told->outcome == QUEUE_DEAD) {
        told->cause = cause_name(attempt->ending.cause);
        told->reason = attempt->reason;
    }

    /* what ends the task: kept with its dead letter, and with its result */
    bool last = told->outcome == QUEUE_SUCCESS || told->outcome == QUEUE_DEAD;
    told->result_ttl_ms = last ? result->ttl_ms : 0;
    if (told->outcome == QUEUE_DEAD || told->result_ttl_ms > 0) {
        told->stdout_tail = attempt->stdout_tail;
        told->stderr_tail = attempt->stderr_tail;
        usage_format(&attempt->usage, texts->usage, sizeof texts->usage);
        told->usage = texts->usage;
    }
}

void pending_outcome_add_to(struct command *command, const struct pending_outcome *result)
{
    struct queue_result told = {.token = pending_outcome_token(result),
                                .outcome = queue_outcome_of(result->outcome.verdict),
                                .cause = "",
                                .status = "",
                                .reason = "",
                                .usage = "",
                                .delay_ms = result->outcome.delay_ms,
                                .again = result->again};
    struct texts texts;
    if (result->attempt) {
        tell_attempt(result, &told, &texts);
    }
    queue_finish_add(command, &told);
}
