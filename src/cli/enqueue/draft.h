/*
 * A task before it is sent: its fields, and the checks that leatd would make.
 */
#ifndef LEAT_CLI_ENQUEUE_DRAFT_H
#define LEAT_CLI_ENQUEUE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "queue/keys.h"
#include "queue/task.h"
#include "redis/command.h"

/* A zeroed draft is empty. Names and values are not copied. */
struct draft {
    struct task_field *fields;
    size_t count;
};

/* Returns 0, or -1 without memory. */
int draft_add(struct draft *draft, struct bytes name, struct bytes value);
int draft_add_text(struct draft *draft, const char *name, const char *value);

bool draft_has(const struct draft *draft, const char *name);

/* The id that the task is given; size 0: none. */
struct bytes draft_label(const struct draft *draft);

/* Removes every field of that name. */
void draft_remove(struct draft *draft, const char *name);

/* Returns true, or false with the reason why a leatd with this configuration would refuse the task.
 * Listed commands are left to draft_is_listed. */
bool draft_check(const struct draft *draft, const struct config_task *config, char *reason,
                 size_t reason_size);

/* Checks the command of a draft that passed draft_check, if the config lists the allowed commands:
 * it must be one of them, the fields that it needs must be there and fit, and the task must have no
 * directory. Returns true, or false with the reason. */
bool draft_is_listed(const struct draft *draft, const struct config *config, char *reason,
                     size_t reason_size);

/* Adds the task to a call of leat_enqueue. */
void draft_append(const struct draft *draft, const char *due, struct command *command);

void draft_free(struct draft *draft);

#endif
