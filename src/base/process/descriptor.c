/* Reads whole files, and moves descriptors to higher numbers. */
#include "base/process/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { OUT_OF_THE_WAY = 256 };

int descriptor_above(int fd, int least)
{
    if (fd < 0 || fd >= least) {
        return fd;
    }
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, least);
    if (moved < 0 && errno == EINVAL) {
        errno = EMFILE; /* the limit of open files is not greater than `least` */
    }
    descriptor_close(&fd);
    return moved;
}

int descriptor_out_of_the_way(int fd)
{
    int moved = fd >= 0 && fd < OUT_OF_THE_WAY ? fcntl(fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY) : -1;
    if (moved < 0) {
        return fd;
    }
    close(fd);
    return moved;
}

void descriptor_close(int *fd)
{
    int error = errno;
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
    errno = error;
}

ssize_t descriptor_read(int fd, char *data, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(fd, data + used, size - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? -1 : (ssize_t)used;
        }
        used += (size_t)got;
    }
    return (ssize_t)used;
}
