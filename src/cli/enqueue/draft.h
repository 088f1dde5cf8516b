/*
 * A task before it is sent: its fields, and the check that leatd would make.
 */
#ifndef LEAT_CLI_ENQUEUE_DRAFT_H
#define LEAT_CLI_ENQUEUE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "queue/queue.h"
#include "queue/task.h"

/* Zeroed, it is an empty draft. Names and values are not copied. */
struct draft {
    struct task_field *fields;
    size_t count, capacity;
};

/* Returns 0, or -1 without memory. */
int draft_add(struct draft *draft, struct bytes name, struct bytes value);
int draft_add_text(struct draft *draft, const char *name, const char *value);

bool draft_has(const struct draft *draft, const char *name);

/* Takes the field out, wherever it is. */
void draft_remove(struct draft *draft, const char *name);

/* True, or false with the reason why leatd would refuse the task. */
bool draft_check(const struct draft *draft, bool own_command, char *reason, size_t reason_size);

/* True where the command of a task that was checked is one of those that the config lists, and the
 * task has the fields that it needs and no directory, or none is listed; else false with the
 * reason. */
bool draft_is_listed(const struct draft *draft, const struct config *config, char *reason,
                     size_t reason_size);

/* Adds the task to an enqueue command. */
void draft_append(const struct draft *draft, const char *due, struct command *command);

void draft_free(struct draft *draft);

#endif
