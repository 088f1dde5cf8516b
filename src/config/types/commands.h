/*
 * The sections [command.NAME]: lists of NAME=VALUE, a list for each key.
 */
#ifndef LEAT_CONFIG_TYPES_COMMANDS_H
#define LEAT_CONFIG_TYPES_COMMANDS_H

#include <stdbool.h>

#include "base/buffer.h"

#define COMMANDS_NAME_MOST 40

/* Why a task that names a listed command is refused if it brings a working directory. */
#define COMMANDS_NO_DIRECTORY "field directory is not allowed: commands of this queue are listed"

bool commands_is_name(const char *name);

/* Each adds NAME=TEXT to the list (NULL while empty). Returns 0, or -1 with the reason in why, as
 * value_set. */
int commands_set_program(char ***list, const char *name, const char *text, struct buffer *why);
int commands_set_arguments(char ***list, const char *name, const char *text, struct buffer *why);

/* What the section [command.NAME] has in that list (config->command's), or NULL. */
const char *config_command_value(char *const *list, const char *name);

#endif
