/*
 * The queues that have a file in /etc/leat.
 */
#ifndef LEAT_CONFIG_FILE_QUEUES_H
#define LEAT_CONFIG_FILE_QUEUES_H

#include <stddef.h>

/* Lists their names, sorted, for queues_free. *error is errno if the folder cannot be read, or else
 * 0. Returns the number of names. */
size_t queues_list(char ***names, int *error);
void queues_free(char **names, size_t count);

#endif
