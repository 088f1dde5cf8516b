/*
 * Reads whole files, and moves descriptors to other numbers. Starting a process copies descriptors
 * that are below the greatest one that the process gets (spawn.h). Long-lived descriptors therefore
 * get high numbers.
 */
#ifndef LEAT_BASE_PROCESS_DESCRIPTOR_H
#define LEAT_BASE_PROCESS_DESCRIPTOR_H

#include <sys/types.h>

/* Moves the descriptor to a number of at least `least`, close-on-exec. Returns the new number, or
 * -1 with errno. fd may be -1. */
int descriptor_above(int fd, int least);

/* Moves the descriptor to a high number if the limit of open files allows it. Returns its number.
 * fd may be -1, which is returned with errno. */
int descriptor_out_of_the_way(int fd);

/* Closes the descriptor if it is open, and sets it to -1. Leaves errno as it is. */
void descriptor_close(int *fd);

/* Reads until the end of the file, or until `size` bytes were read. Returns their number, or -1
 * with errno. */
ssize_t descriptor_read(int fd, char *data, size_t size);

#endif
