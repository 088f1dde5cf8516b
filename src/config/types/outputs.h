/*
 * Paths of output files: one file for each task, in a folder for each queue. The daemon writes them
 * and the leat command reads them.
 */
#ifndef LEAT_CONFIG_TYPES_OUTPUTS_H
#define LEAT_CONFIG_TYPES_OUTPUTS_H

#include "base/buffer.h"
#include "config/config.h"

/* Default if neither the config nor the environment names a folder: the folder of the shipped
 * unit. */
#define OUTPUTS_TOP "/var/log/leat"

/* Writes the queue's folder into *path, with a final NUL. logs is $LOGS_DIRECTORY or NULL; if it
 * has several folders, the first is used. Returns 0, or -1 if memory ran out. */
int outputs_folder(const struct config *config, const char *logs, struct buffer *path);

/* The same for the file of a task. The id always becomes one name within that folder, whatever
 * bytes it has. Returns 0, or -1 if memory ran out or the id is too long for a name. */
int outputs_file(const struct config *config, const char *logs, const char *tid,
                 struct buffer *path);

#endif
