/*
 * Changes of tasks that wait, for leat move, leat now and leat edit.
 */
#ifndef LEAT_CLI_CONTROL_CHANGE_H
#define LEAT_CLI_CONTROL_CHANGE_H

#include <stdbool.h>

#include "cli/enqueue/draft.h"
#include "cli/lib/cli.h"
#include "queue/keys.h"

struct change {
    struct cli *cli;
    const char *verb;       /* "move" */
    const char *event;      /* LEAT_EVENT of the audit record */
    const char *state;      /* of a task that was changed, in JSON: "moved" */
    const char *done;       /* the same in a line; '%s' is its id */
    const char *same;       /* the line of a task that was so already */
    const char *due;        /* see queue_change_begin */
    struct draft fields;    /* a field without data is removed */
    const struct queue *to; /* another queue; NULL: the tasks stay */
    bool json;
};

/* Changes the tasks of these ids and prints what happened to each. record is for the audit record:
 * "alice@web1 RECORD 3 tasks AFTER: …". Returns an exit status. */
int change_tasks(struct change *change, char *const *ids, const char *record, const char *after);

#endif
