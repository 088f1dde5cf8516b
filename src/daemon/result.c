#include "daemon/result.h"

#include <stdlib.h>

/* ---- lists ---- */

void result_list_init(struct result_list *list)
{
    list->head.next = list->head.previous = &list->head;
    list->count = 0;
}

void result_list_append(struct result_list *list, struct result *result)
{
    result->next = &list->head;
    result->previous = list->head.previous;
    result->previous->next = result;
    list->head.previous = result;
    list->count++;
}

void result_list_remove(struct result_list *list, struct result *result)
{
    result->previous->next = result->next;
    result->next->previous = result->previous;
    list->count--;
}

void result_list_put_back(struct result_list *to, struct result_list *from)
{
    while (from->count > 0) {
        struct result *last = from->head.previous;
        result_list_remove(from, last);
        last->again = true;
        last->next = to->head.next;
        last->previous = &to->head;
        last->next->previous = last;
        to->head.next = last;
        to->count++;
    }
}

void result_list_free(struct result_list *list)
{
    while (list->count > 0) {
        struct result *first = list->head.next;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that the list closes up */
        result_list_remove(list, first);
        result_free(first);
    }
}

/* ---- one result ---- */

struct result *result_new(void)
{
    return calloc(1, sizeof(struct result));
}

void result_free(struct result *result)
{
    if (result) {
        if (result->attempt) {
            attempt_free(result->attempt);
        }
        free(result->token);
        free(result);
    }
}

const struct attempt *result_attempt(const struct result *result)
{
    return result->attempt;
}

bool result_sent_before(const struct result *result)
{
    return result->again;
}

enum verdict result_verdict(const struct result *result)
{
    return result->outcome.verdict;
}

const char *result_token(const struct result *result)
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

static void tell_attempt(const struct result *result, struct queue_result *told,
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

void result_add_to(struct command *command, const struct result *result)
{
    struct queue_result told = {.token = result_token(result),
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
