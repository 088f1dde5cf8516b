/*
 * Computes environment tags, and reads them from /proc.
 */
#include "exec/tree/env_tag.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process/descriptor.h"
#include "base/process/proc.h"
#include "base/units.h"

/* A program of [dead] notify has the variables of the attempt that it is about, too, but also
 * LEAT_CAUSE, by which it is told apart. */
enum part { PART_WORKER, PART_TASK, PART_FENCE, PART_CAUSE, PARTS };

static const char *const names[PARTS] = {[PART_WORKER] = "LEAT_WORKER=",
                                         [PART_TASK] = "LEAT_TASK=",
                                         [PART_FENCE] = "LEAT_FENCE=",
                                         [PART_CAUSE] = "LEAT_CAUSE="};

/* FNV-1a */
#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

static uint64_t hash(uint64_t so_far, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        so_far = (so_far ^ (unsigned char)text[i]) * HASH_PRIME;
    }
    return so_far;
}

static uint64_t hash_part(enum part part, const char *value, size_t size)
{
    return hash(hash(HASH_START, names[part], strlen(names[part])), value, size);
}

/* Joins the hashes independently of the order of the variables. */
static uint64_t join(const uint64_t parts[PARTS])
{
    return (parts[PART_WORKER] + 3 * parts[PART_TASK] + 5 * parts[PART_FENCE]) | 1;
}

uint64_t env_tag_worker(const char *worker)
{
    return worker ? hash_part(PART_WORKER, worker, strlen(worker)) : 0;
}

uint64_t env_tag_attempt(uint64_t worker, const struct task *task)
{
    char fence[UNITS_INTEGER_SIZE];
    size_t size = units_format_integer(task->fence, fence);
    const uint64_t parts[PARTS] = {
        [PART_WORKER] = worker,
        [PART_TASK] = hash_part(PART_TASK, task->tid, strlen(task->tid)),
        [PART_FENCE] = hash_part(PART_FENCE, fence, size),
    };
    return join(parts);
}

/* ---- read a process ---- */

/* The state while an environment is read. The variables of a tag are shorter than `entry`. */
struct reading {
    char entry[256];
    size_t size; /* of the whole variable, which may be longer than `entry` */
    bool is_blank;
    uint64_t parts[PARTS];
    bool found[PARTS];
};

static void end_entry(struct reading *reading)
{
    size_t size = reading->size;
    reading->size = 0;
    for (int part = 0; part < PARTS && size <= sizeof reading->entry; part++) {
        size_t name_size = strlen(names[part]);
        if (size >= name_size && memcmp(reading->entry, names[part], name_size) == 0) {
            reading->parts[part] =
                hash_part((enum part)part, reading->entry + name_size, size - name_size);
            reading->found[part] = true;
        }
    }
}

static void take(struct reading *reading, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\0') {
            end_entry(reading);
        } else if (reading->size++ < sizeof reading->entry) {
            reading->entry[reading->size - 1] = data[i];
        }
    }
}

/* Reads the variables that this file of /proc shows. A thread that has ended or is ending has none;
 * newer kernels then do not even open the file. */
static void read_file(const char *path, struct reading *reading)
{
    char data[4096];
    *reading = (struct reading){.size = 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        reading->is_blank = errno == ESRCH;
        return;
    }
    ssize_t size;
    reading->is_blank = true;
    while ((size = read(fd, data, sizeof data)) > 0 || (size < 0 && errno == EINTR)) {
        take(reading, data, size > 0 ? (size_t)size : 0);
        reading->is_blank = reading->is_blank && size < 0;
    }
    reading->is_blank = reading->is_blank && size == 0;
    close(fd);
}

/* Reads the variables of a process whose first thread shows none: others may still run. */
static void read_threads(pid_t pid, struct reading *reading)
{
    struct proc_numbers threads;
    char path[64];
    int thread;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    if (proc_numbers_open(&threads, path)) {
        return;
    }
    while (reading->is_blank && (thread = proc_numbers_next(&threads)) >= 0) {
        if (thread != pid) {
            (void)snprintf(path, sizeof path, "/proc/%d/task/%d/environ", (int)pid, thread);
            read_file(path, reading);
        }
    }
    proc_numbers_close(&threads);
}

/* Reads the variables of a process. Returns true if it belongs to an attempt. */
static bool read_parts(pid_t pid, struct reading *reading)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    read_file(path, reading);
    if (reading->is_blank) {
        read_threads(pid, reading);
    }
    return reading->found[PART_WORKER] && !reading->found[PART_CAUSE];
}

uint64_t env_tag_read(pid_t pid)
{
    struct reading reading;
    if (read_parts(pid, &reading) && reading.found[PART_TASK] && reading.found[PART_FENCE]) {
        return join(reading.parts);
    }
    return reading.is_blank ? ENV_TAG_BLANK : 0;
}

bool env_tag_is_of_worker(pid_t pid, uint64_t worker)
{
    struct reading reading;
    return read_parts(pid, &reading) && reading.parts[PART_WORKER] == worker;
}

/* ---- kill the processes of a dead worker ---- */

static size_t kill_once(uint64_t worker)
{
    struct proc_walk walk;
    struct proc proc;
    size_t met = 0;
    if (proc_walk_open(&walk)) {
        return 0;
    }
    while (proc_walk_next(&walk, &proc)) {
        int fd = proc_open(proc.pid);
        if ((fd >= 0 || errno != ESRCH) && env_tag_is_of_worker(proc.pid, worker) &&
            proc_is_there(fd)) {
            proc_send(fd, proc.pid, SIGKILL);
            met++;
        }
        descriptor_close(&fd);
    }
    proc_walk_close(&walk);
    return met;
}

size_t env_tag_kill(const char *worker)
{
    /* a process that was killed may have forked just before; one that is still dying is met again
     */
    enum { MOST = 4 };
    uint64_t tag = env_tag_worker(worker);
    size_t most = 0, met = 1;
    for (int round = 0; round < MOST && met > 0; round++) {
        met = kill_once(tag);
        most = met > most ? met : most;
    }
    return most;
}
