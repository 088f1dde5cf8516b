/*
 * Compares the fields of a task with the arguments of a listed command.
 */
#ifndef LEAT_QUEUE_ARGUMENTS_FIT_H
#define LEAT_QUEUE_ARGUMENTS_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "config/types/arguments.h"
#include "queue/task.h"

/* Returns the text of the piece for a task with these fields; its data is NULL if the task lacks
 * the field. */
struct bytes arguments_value(const struct argument_piece *piece, const struct task_field *fields,
                             size_t count);

/* Returns true if the fields can be arguments; otherwise false with the reason. */
bool arguments_fit(const struct arguments *arguments, const struct task_field *fields, size_t count,
                   char *reason, size_t reason_size);

#endif
