/*
 * Lists and judges the lock files of the queue's workers on this host.
 */
#include "exec/guard/worker_locks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/control_file.h"
#include "base/process/descriptor.h"
#include "base/process/mounts.h"
#include "base/process/proc.h"
#include "base/units.h"
#include "exec/guard/guard_process.h"
#include "exec/guard/worker_lock.h"
#include "exec/guard/worker_name.h"

#define FILE_MOST 4096  /* bytes of a lock file; leat writes fewer */
#define NAMES_MOST 1000 /* files of a folder that are listed at most */
#define BOOT_ID_SIZE 64
#define START_SLACK_MS 100 /* clocks of files and processes are coarse */

/* ---- reading ---- */

/* Finds the first whole line "NAME VALUE" and copies its value. Returns 0, or −1 if there is none
 * or it does not fit. */
static int find_line(const char *text, const char *name, char *value, size_t size)
{
    size_t length = strlen(name);
    for (const char *end = strchr(text, '\n'); end; end = strchr(text, '\n')) {
        if (strncmp(text, name, length) == 0 && text[length] == ' ') {
            size_t found = (size_t)(end - text) - length - 1;
            if (found == 0 || found >= size) {
                return -1;
            }
            memcpy(value, text + length + 1, found);
            value[found] = '\0';
            return 0;
        }
        text = end + 1;
    }
    return -1;
}

/* Returns true if there is a line "NAME CONSUMER". */
static bool says(const char *text, const char *name, const char *consumer)
{
    char value[sizeof((struct worker_lock_found *)NULL)->consumer];
    return find_line(text, name, value, sizeof value) == 0 && strcmp(value, consumer) == 0;
}

/* ---- judging ---- */

static enum worker_lock_state judge_free(const char *folder, const char *text, int64_t changed_ms,
                                         struct worker_lock_found *found)
{
    char boot[BOOT_ID_SIZE], now[BOOT_ID_SIZE];
    found->stopped = says(text, "stopped", found->consumer);
    if (says(text, "dead", found->consumer)) {
        found->dead_ms = changed_ms;
        return WORKER_LOCK_PROVED;
    }

    /* no process survives a reboot of this host; but on a shared file system the file may belong to
     * another host */
    bool is_known =
        find_line(text, "boot", boot, sizeof boot) == 0 && worker_lock_boot(now, sizeof now) == 0;
    bool is_ours = is_known && strcmp(boot, now) == 0;
    if (is_known && !is_ours && !mounts_is_remote(folder)) {
        return WORKER_LOCK_PROVED;
    }
    if (!is_ours || find_line(text, "cgroup", found->cgroup, sizeof found->cgroup) ||
        strcmp(found->cgroup, "-") == 0) {
        found->cgroup[0] = '\0';
    }
    return WORKER_LOCK_UNPROVED;
}

/* Returns true if the worker's daemon is gone. If hosts or containers share the folder, the pid may
 * mean another process; then the file is only looked at again sooner. */
static bool is_gone(const char *text)
{
    char digits[16];
    int64_t pid;
    return find_line(text, "pid", digits, sizeof digits) == 0 &&
           units_parse_integer(digits, 1, INT32_MAX, &pid) == 0 && kill((pid_t)pid, 0) != 0 &&
           errno == ESRCH;
}

static int64_t to_ms(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000 + time->tv_nsec / CLOCK_NS_PER_MS;
}

/* Returns true if the process that the worker's name holds is alive. Every program of this user can
 * replace a lock file, but none can change that process. If the process has started after the last
 * change of the file, it is another one, which got the same id later. Whoever forges a file cannot
 * set this time of change to an earlier one. */
static bool is_running(const char *consumer, const struct stat *status)
{
    struct proc proc;
    pid_t pid = worker_name_pid(consumer);
    if (pid == 0 || pid == getpid()) {
        return false;
    }
    if (!proc_read(pid, &proc)) {
        return kill(pid, 0) == 0;
    }
    int64_t age_ms = (clock_boot_ns() - proc.started_ns) / CLOCK_NS_PER_MS;
    return proc_is_alive(&proc) &&
           clock_wall_ms() - age_ms <= to_ms(&status->st_ctim) + START_SLACK_MS;
}

/* Returns true if this user or root runs the process. The owner of its folder in /proc does not say
 * that: those of processes that hide themselves belong to root. */
static bool is_trusted(pid_t pid)
{
    static const char name[] = "\nUid:\t";
    char path[32], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    ssize_t size = control_file_read_at(AT_FDCWD, path, text, sizeof text);
    const char *uid = size > 0 ? strstr(text, name) : NULL;
    unsigned long number = uid ? strtoul(uid + strlen(name), NULL, 10) : ULONG_MAX;
    return number == 0 || number == geteuid();
}

/* Returns true if the process is a guard of that worker. The command line of others is not read:
 * they can choose it, and it is in their memory, which can make a reader wait for ever. */
static bool is_guard_of(pid_t pid, const char *consumer)
{
    char path[32], words[1024], *word = words;
    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    ssize_t size = control_file_read_at(AT_FDCWD, path, words, sizeof words);
    for (int i = 0; size > 0 && i < GUARD_ARGUMENT_CONSUMER; i++) {
        char *end = memchr(word, '\0', (size_t)(words + size - word));
        if (!end || (i == 0 && strcmp(word, GUARD_NAME) != 0)) {
            return false;
        }
        word = end + 1;
    }
    return size > 0 && strcmp(word, consumer) == 0; /* what was read ends with a NUL */
}

/* Returns true if a guard of that worker is alive: it may still be killing, even if the file says
 * that all is done. */
static bool is_guarded(const char *consumer)
{
    struct proc_walk walk;
    struct proc proc;
    bool found = false;
    if (worker_name_pid(consumer) == 0 || proc_walk_open(&walk)) {
        return false;
    }
    while (!found && proc_walk_next(&walk, &proc)) {
        found = proc_is_alive(&proc) && is_trusted(proc.pid) && is_guard_of(proc.pid, consumer);
    }
    proc_walk_close(&walk);
    return found;
}

static enum worker_lock_state look_at(const char *folder, int fd, struct worker_lock_found *found)
{
    struct stat status;
    char text[FILE_MOST + 1];
    /* the lock is a shared one, so that two workers that look do not take each other for the owner.
     * After any error the file is not known to be free */
    bool is_locked = flock(fd, LOCK_SH | LOCK_NB) != 0;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode) ||
        (status.st_uid != geteuid() && status.st_uid != 0)) {
        return WORKER_LOCK_NONE; /* a file of another user proves nothing */
    }
    ssize_t got = descriptor_read(fd, text, FILE_MOST);
    if (got < 0) {
        return WORKER_LOCK_NONE;
    }
    text[got] = '\0';
    if (find_line(text, "worker", found->consumer, sizeof found->consumer)) {
        return WORKER_LOCK_NONE;
    }
    if (is_locked) {
        return is_gone(text) ? WORKER_LOCK_ENDS : WORKER_LOCK_LIVES;
    }
    if (worker_name_pid(found->consumer) == 0) {
        return WORKER_LOCK_UNPROVED; /* of another host: nobody here can see whether it lives */
    }
    if (is_running(found->consumer, &status)) {
        return WORKER_LOCK_LIVES;
    }
    enum worker_lock_state state = judge_free(folder, text, to_ms(&status.st_mtim), found);
    return state == WORKER_LOCK_PROVED && is_guarded(found->consumer) ? WORKER_LOCK_ENDS : state;
}

/* ---- the folder ---- */

char *worker_locks_folder(const char *state, const char *queue)
{
    char *folder;
    const char *first = state ? state : getenv("RUNTIME_DIRECTORY");
    if (!first || !*first) {
        first = "/run/leat";
    }
    size_t size = state ? strlen(state) : strcspn(first, ":"); /* systemd may list several */
    return asprintf(&folder, "%.*s/%s", (int)size, first, queue) < 0 ? NULL : folder;
}

static int open_folder(const char *folder)
{
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum worker_lock_state worker_locks_look(const char *folder, const char *name,
                                         struct worker_lock_found *found)
{
    *found = (struct worker_lock_found){0};
    int at = open_folder(folder);
    if (at < 0) {
        return WORKER_LOCK_NONE;
    }
    enum worker_lock_state state = WORKER_LOCK_NONE;
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        state = look_at(folder, fd, found);
        (void)close(fd); /* it was only read; this releases the lock */
        if (strcmp(name, found->consumer) != 0) {
            state = WORKER_LOCK_NONE; /* a copy of a lock file: nobody would have locked it */
        }
    }
    (void)close(at); /* it was only read */
    return state;
}

int worker_locks_remove(const char *folder, const char *name)
{
    int at = open_folder(folder);
    if (at < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    int result = unlinkat(at, name, 0);
    int error = errno;
    (void)close(at); /* it was only read */
    errno = error;
    return result && error != ENOENT ? -1 : 0;
}

void worker_locks_list_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++) {
        free(names[i]);
    }
    free(names);
}

char **worker_locks_list(const char *folder)
{
    DIR *files = opendir(folder);
    char **names = calloc(NAMES_MOST + 1, sizeof *names);
    size_t count = 0;
    bool failed = !files || !names;
    while (!failed && count < NAMES_MOST) {
        struct dirent *file = readdir(files);
        if (!file) {
            break;
        }
        /* a file that is still being written has a leading dot */
        if (file->d_name[0] != '.') {
            names[count] = strdup(file->d_name);
            failed = !names[count];
            count += !failed;
        }
    }
    if (files) {
        (void)closedir(files); /* it was only read */
    }
    if (failed) {
        worker_locks_list_free(names); /* free() keeps errno */
        return NULL;
    }
    return names;
}
