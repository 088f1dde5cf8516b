/*
 * The sections [command.NAME], kept as one list of NAME=VALUE for each key.
 */
#ifndef LEAT_CONFIG_TYPES_COMMANDS_H
#define LEAT_CONFIG_TYPES_COMMANDS_H

#include <stdbool.h>

#include "base/buffer.h"

#define COMMANDS_NAME_MOST 40

/* Why a task that names a listed command is refused if it brings a working directory. */
#define COMMANDS_NO_DIRECTORY "field directory is not allowed: commands of this queue are listed"

bool commands_is_name(const char *name);

/* Each adds NAME=TEXT to the list (NULL if empty). Returns 0, or -1 with the reason in why, like
 * value_set. */
int commands_set_program(char ***list, const char *name, const char *text, struct buffer *why);
int commands_set_arguments(char ***list, const char *name, const char *text, struct buffer *why);

/* The value of the section [command.NAME] in a list of config->command, or NULL. */
const char *config_command_value(char *const *list, const char *name);

#endif
