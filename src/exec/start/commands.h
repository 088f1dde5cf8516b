/*
 * Listed commands: what a task that names one of the sections [command.NAME] executes. The values
 * of its fields are put into single arguments, never through a shell.
 */
#ifndef LEAT_EXEC_START_COMMANDS_H
#define LEAT_EXEC_START_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "queue/task.h"

struct commands;

/* The config's. Keeps no pointer into it. Returns NULL without memory. */
struct commands *commands_new(const struct config_command *config);
void commands_free(struct commands *commands);

/* True where the task, which task_check has let pass, names one, has what its arguments need and
 * brings no directory; else false with the reason. */
bool commands_fit(const struct commands *commands, const struct task *task, char *reason,
                  size_t reason_size);

/* argv of a task that fits, in one allocation that the caller frees; NULL without memory, or where
 * it does not fit. The first word is the program, a path or a name to be found on PATH. */
char **commands_words(const struct commands *commands, const struct task *task);

/* The programs one after the other, NULL behind the last. */
const char *commands_program(const struct commands *commands, size_t index);

/* Whether the program can be executed here: 0, or an errno. path as in [task] path. */
int commands_look(const char *program, const char *path);

#endif
