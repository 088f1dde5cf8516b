#include "exec/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/descriptor.h"

/* What says later whether the worker ran under the same kernel. Returns 0 or -1. */
static int read_boot(char *id, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, id, size - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (got <= 1) {
        return -1;
    }
    id[got] = '\0';
    id[strcspn(id, "\n")] = '\0';
    return 0;
}

/* With the folder above, which may be missing where it is one of the system's. */
static int make_folder(const char *folder)
{
    char *above = strdup(folder);
    char *last = above ? strrchr(above, '/') : NULL;
    int result = -1;
    if (last && last > above) {
        *last = '\0';
        result = mkdir(above, 0755) && errno != EEXIST ? -1 : 0;
    }
    free(above);
    return result || (mkdir(folder, 0755) && errno != EEXIST) ? -1 : 0;
}

static int write_line(int fd, const char *text)
{
    size_t size = strlen(text);
    errno = ENOSPC; /* where a part is written */
    return write(fd, text, size) == (ssize_t)size ? 0 : -1;
}

/* Whole and locked before others see it: they pass over names with a dot in front. For this user
 * alone: who can open it can lock it, and so keep its worker from living, or being dead, to others.
 */
static int write_file(struct hold *hold, const char *making, const char *text)
{
    hold->fd = descriptor_out_of_the_way(
        open(making, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (hold->fd < 0) {
        return -1;
    }
    if (flock(hold->fd, LOCK_EX | LOCK_NB) || write_line(hold->fd, text) ||
        rename(making, hold->path)) {
        int error = errno;
        (void)unlink(making); /* what stays is passed over */
        close(hold->fd);
        hold->fd = -1;
        errno = error;
        return -1;
    }
    return 0;
}

int hold_make(struct hold *hold, const char *folder, const char *consumer, const char *cgroup)
{
    char boot[64], *making = NULL, *text = NULL;
    int result = -1;
    *hold = (struct hold){.fd = -1};
    if (read_boot(boot, sizeof boot) || make_folder(folder)) {
        return -1;
    }
    if (asprintf(&hold->path, "%s/%s", folder, consumer) < 0) {
        hold->path = NULL;
    }
    if (asprintf(&making, "%s/.%s", folder, consumer) < 0) {
        making = NULL;
    }
    if (asprintf(&text, "worker %s\nboot %s\npid %ld\ncgroup %s\n", consumer, boot, (long)getpid(),
                 cgroup) < 0) {
        text = NULL;
    }
    errno = ENOMEM;
    if (hold->path && making && text) {
        result = write_file(hold, making, text);
    }
    int error = errno;
    free(making);
    free(text);
    if (result) {
        hold_drop(hold, false);
    }
    errno = error;
    return result;
}

void hold_drop(struct hold *hold, bool remove)
{
    if (hold->fd >= 0) {
        if (remove) {
            (void)unlink(hold->path); /* others remove what serves nothing */
        }
        close(hold->fd);
    }
    free(hold->path);
    *hold = (struct hold){.fd = -1};
}
