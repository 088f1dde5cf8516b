/* Reads processes from /proc and signals them. */
#include "base/process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* Fields of /proc/PID/stat after the name, see proc(5). The name may contain any character. */
enum {
    FIELD_STATE,
    FIELD_PARENT,
    FIELD_GROUP,
    FIELD_SESSION,
    FIELD_THREADS = 17,
    FIELD_STARTED = 19,
    FIELDS,
};

/* Parses the number at text. Returns the beginning of the next word. */
static const char *parse_number(const char *text, int64_t *number)
{
    bool negative = *text == '-';
    *number = 0;
    for (text += negative; *text >= '0' && *text <= '9'; text++) {
        *number = *number * 10 + (*text - '0');
    }
    *number = negative ? -*number : *number;
    return *text == ' ' ? text + 1 : text;
}

static bool parse(const char *text, struct proc *proc)
{
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0' || at[3] != ' ') {
        return false;
    }
    proc->state = at[2];
    at += 4;
    int64_t fields[FIELDS] = {0};
    for (int i = FIELD_PARENT; i < FIELDS; i++) {
        const char *next = parse_number(at, &fields[i]);
        if (next == at) {
            return false;
        }
        at = next;
    }
    proc->parent = (pid_t)fields[FIELD_PARENT];
    proc->group = (pid_t)fields[FIELD_GROUP];
    proc->session = (pid_t)fields[FIELD_SESSION];
    proc->threads = (int)fields[FIELD_THREADS];
    proc->started_ns = fields[FIELD_STARTED] * PROC_TICK_NS;
    return true;
}

bool proc_read(pid_t pid, struct proc *proc)
{
    char path[32], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t size = read(fd, text, sizeof text - 1);
    int error = errno;
    close(fd);
    if (size <= 0) {
        errno = error;
        return false;
    }
    text[size] = '\0';
    proc->pid = pid;
    return parse(text, proc);
}

bool proc_is_alive(const struct proc *proc)
{
    return (proc->state != 'Z' && proc->state != 'X') || proc->threads > 1;
}

/* ---- signals ---- */

int proc_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int proc_signal(int fd, int signal, unsigned flags)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, flags);
}

void proc_send(int fd, pid_t pid, int signal)
{
    (void)(fd >= 0 ? proc_signal(fd, signal, 0)
                   : kill(pid, signal)); /* errors are ignored, see proc.h */
}

bool proc_is_there(int fd)
{
    return fd < 0 || proc_signal(fd, 0, 0) == 0 || errno != ESRCH;
}

/* ---- folders of numbers ---- */

/* An entry as getdents64(2) returns it. */
struct directory_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* Returns the number of a name that has only digits, otherwise -1. */
static int parse_name(const char *name)
{
    int64_t number = 0;
    const char *at = name;
    for (; *at >= '0' && *at <= '9' && number < INT32_MAX / 10; at++) {
        number = number * 10 + (*at - '0');
    }
    return at > name && *at == '\0' ? (int)number : -1;
}

int proc_numbers_open(struct proc_numbers *numbers, const char *folder)
{
    numbers->size = numbers->at = 0;
    numbers->directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return numbers->directory < 0 ? -1 : 0;
}

int proc_numbers_next(struct proc_numbers *numbers)
{
    for (;;) {
        if (numbers->at >= numbers->size) {
            numbers->at = 0;
            numbers->size =
                syscall(SYS_getdents64, numbers->directory, numbers->bytes, sizeof numbers->bytes);
            if (numbers->size <= 0) {
                return -1;
            }
        }
        const struct directory_entry *entry =
            (const struct directory_entry *)(const void *)(numbers->bytes + numbers->at);
        numbers->at += entry->size;
        int number = parse_name(entry->name);
        if (number >= 0) {
            return number;
        }
    }
}

void proc_numbers_close(struct proc_numbers *numbers)
{
    close(numbers->directory);
}

/* ---- all processes ---- */

/* True if the process may exist but could not be read, for lack of descriptors or memory. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

int proc_walk_open(struct proc_walk *walk)
{
    int result = proc_numbers_open(&walk->numbers, "/proc");
    walk->partial = result < 0 && is_shortage(errno);
    return result;
}

bool proc_walk_next(struct proc_walk *walk, struct proc *proc)
{
    pid_t pid;
    while ((pid = proc_numbers_next(&walk->numbers)) >= 0) {
        errno = 0;
        if (pid > 0 && proc_read(pid, proc)) {
            return true;
        }
        walk->partial = walk->partial || is_shortage(errno);
    }
    walk->partial = walk->partial || walk->numbers.size < 0;
    return false;
}

void proc_walk_close(struct proc_walk *walk)
{
    proc_numbers_close(&walk->numbers);
}
