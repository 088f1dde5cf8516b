/*
 * Creates, locks and removes this worker's lock file.
 */
#include "exec/guard/worker_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/control_file.h"
#include "base/process/descriptor.h"

int worker_lock_boot(char *id, size_t size)
{
    ssize_t got = control_file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", id, size);
    id[strcspn(id, "\n")] = '\0';
    return got > 1 ? 0 : -1;
}

/* Creates the folder and its parent, such as /run/leat, if they are missing. */
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
    errno = ENOSPC; /* for a write that is cut short */
    return write(fd, text, size) == (ssize_t)size ? 0 : -1;
}

/* Writes and locks the file under a name with a leading dot, which others ignore, and renames it
 * when it is complete. Only this user may open it: whoever can open it can lock it, and so make
 * others believe that its worker lives. */
static int write_file(struct worker_lock *lock, const char *making, const char *text)
{
    lock->fd = descriptor_out_of_the_way(
        open(making, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (lock->fd < 0) {
        return -1;
    }
    if (flock(lock->fd, LOCK_EX | LOCK_NB) || write_line(lock->fd, text) ||
        rename(making, lock->path)) {
        int error = errno;
        (void)unlink(making); /* others ignore it if it stays */
        close(lock->fd);
        lock->fd = -1;
        errno = error;
        return -1;
    }
    return 0;
}

int worker_lock_make(struct worker_lock *lock, const char *folder, const char *consumer,
                     const char *cgroup)
{
    char boot[64], *making = NULL, *text = NULL;
    int result = -1;
    *lock = (struct worker_lock){.fd = -1};
    if (worker_lock_boot(boot, sizeof boot) || make_folder(folder)) {
        return -1;
    }
    if (asprintf(&lock->path, "%s/%s", folder, consumer) < 0) {
        lock->path = NULL;
    }
    if (asprintf(&making, "%s/.%s", folder, consumer) < 0) {
        making = NULL;
    }
    if (asprintf(&text, "worker %s\nboot %s\npid %ld\ncgroup %s\n", consumer, boot, (long)getpid(),
                 cgroup) < 0) {
        text = NULL;
    }
    errno = ENOMEM;
    if (lock->path && making && text) {
        result = write_file(lock, making, text);
    }
    int error = errno;
    free(making);
    free(text);
    if (result) {
        worker_lock_drop(lock, false);
    }
    errno = error;
    return result;
}

bool worker_lock_is_in_place(const struct worker_lock *lock)
{
    struct stat own, there;
    if (fstat(lock->fd, &own)) {
        return true; /* it cannot be known */
    }
    if (lstat(lock->path, &there)) {
        return errno != ENOENT && errno != ENOTDIR;
    }
    return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

void worker_lock_note_stop(const struct worker_lock *lock, const char *consumer)
{
    if (lock->fd >= 0) {
        /* a line that is cut, or that was not written, only counts crashes */
        (void)dprintf(lock->fd, "stopped %s\n", consumer);
    }
}

void worker_lock_drop(struct worker_lock *lock, bool remove)
{
    if (lock->fd >= 0) {
        if (remove) {
            (void)unlink(lock->path); /* if it stays, other workers remove it */
        }
        close(lock->fd);
    }
    free(lock->path);
    *lock = (struct worker_lock){.fd = -1};
}
