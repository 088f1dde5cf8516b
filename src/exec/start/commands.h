/*
 * Listed commands: the programs that tasks may run when they name a section [command.NAME]. The
 * values of a task's fields become single arguments, and no shell sees them.
 */
#ifndef LEAT_EXEC_START_COMMANDS_H
#define LEAT_EXEC_START_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "queue/task.h"

struct commands;

/* Reads the listed commands of the config, and keeps no pointer into it. Returns NULL without
 * memory. */
struct commands *commands_new(const struct config_command *config);
void commands_free(struct commands *commands);

/* Returns true if the task names a listed command, has the fields that its arguments need and
 * brings no directory; otherwise false with the reason. task_check must have accepted the task. */
bool commands_fit(const struct commands *commands, const struct task *task, char *reason,
                  size_t reason_size);

/* Returns argv for a task, in one allocation that the caller frees; or NULL without memory, or if
 * commands_fit refuses the task. The first word is a path, or a name to look up in PATH. */
char **commands_words(const struct commands *commands, const struct task *task);

/* Returns program number index; NULL after the last. */
const char *commands_program(const struct commands *commands, size_t index);

/* Returns 0 if the program can be executed here, or an errno. path is as in [task] path. */
int commands_look(const char *program, const char *path);

#endif
