/*
 * Changes of tasks that wait: the call, and the answers.
 */
#include "cli/control/change.h"

#include "cli/control/targets.h"
#include "cli/lib/audit.h"
#include "queue/calls.h"

static void begin(void *context, struct command *command)
{
    const struct change *change = context;

    queue_change_begin(command, &change->cli->queue, change->to, change->due, change->fields.count);
    for (size_t i = 0; i < change->fields.count; i++) {
        queue_change_field(command, change->fields.fields[i].name, change->fields.fields[i].value);
    }
}

int change_tasks(struct change *change, char *const *ids, const char *record, const char *after)
{
    const struct target_answer answers[] = {
        {"ok", change->state, change->done, "tid", .acted = true},
        {"same", "unchanged", change->same, .detail = "tid"},
        {"running", "running", "it runs on %s; wait for its end, or stop it: leat cancel", "worker",
         .is_error = true},
        {"dead", "dead", "it is a dead letter; to enqueue it again: leat dead retry",
         .is_error = true},
        {0},
    };
    struct targets targets = {.cli = change->cli,
                              .verb = change->verb,
                              .json = change->json,
                              .answers = answers,
                              .begin = begin,
                              .context = change,
                              .done.event = change->event};
    int status = targets_act(&targets, ids);

    if (targets.done.count > 0) {
        audit_record(change->cli, &targets.done, "%s %zu task%s%s", record, targets.done.count,
                     targets.done.count == 1 ? "" : "s", after);
    }
    return status;
}
