#include "exec/guard/worker_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/descriptor.h"

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
static int write_file(struct worker_lock *worker_lock, const char *making, const char *text)
{
    worker_lock->fd = descriptor_out_of_the_way(
        open(making, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (worker_lock->fd < 0) {
        return -1;
    }
    if (flock(worker_lock->fd, LOCK_EX | LOCK_NB) || write_line(worker_lock->fd, text) ||
        rename(making, worker_lock->path)) {
        int error = errno;
        (void)unlink(making); /* what stays is passed over */
        close(worker_lock->fd);
        worker_lock->fd = -1;
        errno = error;
        return -1;
    }
    return 0;
}

int worker_lock_make(struct worker_lock *worker_lock, const char *folder, const char *consumer,
                     const char *cgroup)
{
    char boot[64], *making = NULL, *text = NULL;
    int result = -1;
    *worker_lock = (struct worker_lock){.fd = -1};
    if (read_boot(boot, sizeof boot) || make_folder(folder)) {
        return -1;
    }
    if (asprintf(&worker_lock->path, "%s/%s", folder, consumer) < 0) {
        worker_lock->path = NULL;
    }
    if (asprintf(&making, "%s/.%s", folder, consumer) < 0) {
        making = NULL;
    }
    if (asprintf(&text, "worker %s\nboot %s\npid %ld\ncgroup %s\n", consumer, boot, (long)getpid(),
                 cgroup) < 0) {
        text = NULL;
    }
    errno = ENOMEM;
    if (worker_lock->path && making && text) {
        result = write_file(worker_lock, making, text);
    }
    int error = errno;
    free(making);
    free(text);
    if (result) {
        worker_lock_drop(worker_lock, false);
    }
    errno = error;
    return result;
}

void worker_lock_drop(struct worker_lock *worker_lock, bool remove)
{
    if (worker_lock->fd >= 0) {
        if (remove) {
            (void)unlink(worker_lock->path); /* others remove what serves nothing */
        }
        close(worker_lock->fd);
    }
    free(worker_lock->path);
    *worker_lock = (struct worker_lock){.fd = -1};
}
