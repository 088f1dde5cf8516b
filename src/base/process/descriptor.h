/*
 * Numbers of descriptors. A start copies those that lie below the greatest that its process gets
 * (spawn.h), so what is kept for as long as a task runs, or longer, is out of the way.
 */
#ifndef LEAT_BASE_PROCESS_DESCRIPTOR_H
#define LEAT_BASE_PROCESS_DESCRIPTOR_H

/* The same descriptor with a number that is not below `least`, close-on-exec; closes the former.
 * Takes and gives back -1 with errno. */
int descriptor_above(int fd, int least);

/* The same descriptor with a number out of the way, where the limit of open files allows it, else
 * as it is. Takes and gives back -1 with errno. */
int descriptor_out_of_the_way(int fd);

/* Closes it where it is open; it is -1 then. */
void descriptor_close(int *fd);

#endif
