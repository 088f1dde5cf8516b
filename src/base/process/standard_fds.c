/* Opens descriptors 0, 1 and 2 if they are closed. */
#include "base/process/standard_fds.h"

#include <fcntl.h>
#include <unistd.h>

int standard_fds_open(bool usable)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int wrong = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        /* open returns the lowest free number, which is fd: all below it are open */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", usable ? O_RDWR : wrong) < 0) {
            return -1;
        }
    }
    return 0;
}
