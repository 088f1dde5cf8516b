/*
 * Outcomes that wait to be settled: linked lists, and their encoding for leat_finish.
 */
#include "daemon/report/pending_outcome.h"

#include <stdlib.h>

#include "base/units.h"
#include "queue/calls.h"
#include "queue/history_record.h"

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
    char history[QUEUE_HISTORY_RECORD];
};

/* The value of a field of the task, if it has one. */
static struct bytes field_of(const struct task *task, const char *name)
{
    for (size_t i = 0; i < task->field_count; i++) {
        if (task->fields[i].value.size > 0 && bytes_equal(task->fields[i].name, name)) {
            return task->fields[i].value;
        }
    }
    return bytes_of(NULL);
}

/* The beginning of the command that ran: the task's, or the config's. */
static struct bytes command_of(const struct worker_context *worker, const struct task *task)
{
    struct bytes command = task->command ? *task->command : bytes_of(worker->config->task.command);

    command.size = command.size < QUEUE_PREVIEW
                       ? command.size
                       : bytes_whole(command.data, QUEUE_PREVIEW, QUEUE_PREVIEW);
    return command;
}

/* Packs the record of a task that has ended. Returns its size. */
static size_t pack_record(const struct worker_context *worker, const struct attempt *attempt,
                          const struct queue_result *result, struct texts *texts)
{
    const struct task *task = attempt->task;
    const int64_t numbers[HISTORY_ITEMS] = {
        [HISTORY_ATTEMPTS] = task->attempt,           [HISTORY_ENQUEUED_MS] = task->enqueued_ms,
        [HISTORY_WAITED_MS] = task->waited_ms,        [HISTORY_BEGUN_MS] = attempt->started_wall_ms,
        [HISTORY_DURATION_US] = attempt->duration_us,
    };
    struct bytes items[HISTORY_ITEMS] = {
        [HISTORY_TID] = bytes_of(task->tid),
        [HISTORY_OUTCOME] = bytes_of(result->outcome == VERDICT_SUCCESS ? "succeeded" : "dead"),
        [HISTORY_CAUSE] =
            bytes_of(attempt->ending.cause == CAUSE_EXIT && result->outcome == VERDICT_SUCCESS
                         ? ""
                         : cause_name(attempt->ending.cause)),
        [HISTORY_STATUS] = bytes_of(result->status),
        [HISTORY_REASON] = bytes_of(result->reason),
        [HISTORY_WORKER] = bytes_of(worker->consumer),
        [HISTORY_USAGE] = bytes_of(attempt_has_own_usage(attempt) ? texts->usage : ""),
        [HISTORY_LABEL] = task->label ? *task->label : bytes_of(NULL),
        [HISTORY_LANE] = task->unlaned ? bytes_of(NULL) : field_of(task, "lane"),
        [HISTORY_COMMAND] = command_of(worker, task),
    };
    char digits[HISTORY_ITEMS][UNITS_INTEGER_SIZE];
    for (size_t i = HISTORY_ATTEMPTS; i <= HISTORY_DURATION_US; i++) {
        if (numbers[i] > 0 || i == HISTORY_WAITED_MS) {
            size_t size = units_format_integer(numbers[i], digits[i]);
            items[i] = (struct bytes){digits[i], size};
        }
    }
    return history_record_pack(items, texts->history);
}

static void describe_attempt(const struct worker_context *worker,
                             const struct pending_outcome *pending, struct queue_result *result,
                             struct texts *texts, struct buffer *successes)
{
    const struct attempt *attempt = pending->attempt;
    bool dead = result->outcome == VERDICT_DEAD;
    result->duration_us = attempt->duration_us;
    if (result->outcome != VERDICT_RELEASE) {
        ending_status(&attempt->ending, texts->status, sizeof texts->status);
        result->status = texts->status;
    }
    if (result->outcome == VERDICT_RETRY || dead) {
        result->cause = cause_name(attempt->ending.cause);
        result->reason = attempt->reason;
    }
    if (result->outcome != VERDICT_SUCCESS && !dead) {
        return;
    }

    /* the last attempt's output tails and usage go into the dead letter and the result */
    bool told = dead || pending->ttl_ms > 0;
    result->result_ttl_ms = pending->ttl_ms;
    texts->usage[0] = '\0';
    if (told || attempt_has_own_usage(attempt)) {
        usage_format(&attempt->usage, texts->usage, sizeof texts->usage);
    }
    if (told) {
        result->stdout_tail = attempt->stdout_tail;
        result->stderr_tail = attempt->stderr_tail;
        result->usage = texts->usage;
    }
    struct bytes record = {texts->history, pack_record(worker, attempt, result, texts)};
    if (dead) {
        result->history = record;
    } else {
        /* a failed append marks the buffer, which is then not sent */
        (void)buffer_append(successes, record.data, record.size);
    }
}

void pending_outcome_add_to(struct worker_context *worker, const struct pending_outcome *pending,
                            struct buffer *successes)
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
        describe_attempt(worker, pending, &result, &texts, successes);
    }
    queue_finish_add(&worker->command, &result);
}
