/*
 * Where the output of tasks stands that goes to files: a file for each task, in a folder for each
 * queue. The daemon writes there, and the command reads.
 */
#ifndef LEAT_CONFIG_TYPES_OUTPUTS_H
#define LEAT_CONFIG_TYPES_OUTPUTS_H

#include "base/buffer.h"
#include "config/config.h"

/* Used where neither the config nor the environment names a folder: that of the shipped unit. */
#define OUTPUTS_TOP "/var/log/leat"

/* The queue's folder into *path, ended by NUL. logs is the unit's $LOGS_DIRECTORY, or NULL; of
 * several folders in it the first counts. Returns 0, or -1 without memory. */
int outputs_folder(const struct config *config, const char *logs, struct buffer *path);

/* The same for the task's file. Whatever bytes the id has, it stays one name within that folder.
 * Returns 0, or -1 without memory, or where the id is too long for a name. */
int outputs_file(const struct config *config, const char *logs, const char *tid,
                 struct buffer *path);

#endif
