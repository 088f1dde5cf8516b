/*
 * One cgroup that is used again for task after task: its files, limits, kill and accounting.
 */
#include "exec/cgroup/task_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/control_file.h"
#include "base/process/descriptor.h"
#include "exec/cgroup/hierarchy.h"

/* Before Linux 6.12 memory.peak cannot be reset, and shows a task's peak only if it is higher than
 * those of all earlier tasks. The cgroup is therefore created again, but not more often than this,
 * since the kernel keeps removed cgroups for a while. */
#define REMAKE_NS CLOCK_NS_PER_S

enum { STAT_SIZE = 4096 };

/* The part of a limit of memory that may be taken by what earlier tasks have left. */
#define REMAINS_PART 16

/* How many cgroups a task may create below its own. The daemon waits while they are removed. */
#define MOST_BELOW "250"

struct task_cgroup {
    int parent;
    char name[24];
    unsigned controllers;
    int directory, kill, events;                       /* -1: there is no cgroup now */
    int cpu_stat, memory_peak, memory_events, io_stat; /* -1: the kernel has no such file */
    struct bounds bounds;                              /* as they are in the files */
    bool dirty;                                        /* create it again for the next task */
    bool peak_resets;                                  /* writing to memory.peak resets it */
    bool has_io_weight;                                /* not every kernel has io.weight */
    int64_t made_ns;
    /* the counters after the last task */
    int64_t cpu_us, peak, oom_kills, io_read, io_written;
};

static void close_files(struct task_cgroup *task_cgroup)
{
    descriptor_close(&task_cgroup->directory);
    descriptor_close(&task_cgroup->kill);
    descriptor_close(&task_cgroup->events);
    descriptor_close(&task_cgroup->cpu_stat);
    descriptor_close(&task_cgroup->memory_peak);
    descriptor_close(&task_cgroup->memory_events);
    descriptor_close(&task_cgroup->io_stat);
}

/* ---- create and remove ---- */

static int open_file(const struct task_cgroup *task_cgroup, const char *name, int mode)
{
    return descriptor_out_of_the_way(openat(task_cgroup->directory, name, mode | O_CLOEXEC));
}

static void open_accounts(struct task_cgroup *task_cgroup)
{
    task_cgroup->cpu_stat = open_file(task_cgroup, "cpu.stat", O_RDONLY);
    if (task_cgroup->controllers & BOUNDS_MEMORY) {
        task_cgroup->memory_events = open_file(task_cgroup, "memory.events", O_RDONLY);
        task_cgroup->memory_peak = open_file(task_cgroup, "memory.peak", O_RDWR);
        task_cgroup->peak_resets =
            task_cgroup->memory_peak >= 0 && write(task_cgroup->memory_peak, "0", 1) == 1;
        if (task_cgroup->memory_peak < 0) {
            task_cgroup->memory_peak = open_file(task_cgroup, "memory.peak", O_RDONLY);
        }
        /* if one process of a task is OOM-killed, the kernel kills the others too */
        (void)control_file_write(task_cgroup->directory, "memory.oom.group",
                                 "1"); /* since Linux 4.19 */
    }
    if (task_cgroup->controllers & BOUNDS_IO) {
        task_cgroup->has_io_weight =
            faccessat(task_cgroup->directory, bounds_file(TASK_IO_WEIGHT), F_OK, 0) == 0;
        task_cgroup->io_stat = open_file(task_cgroup, "io.stat", O_RDONLY);
    }
}

/* Returns 0, or -1 with errno. */
static int make(struct task_cgroup *task_cgroup)
{
    if (mkdirat(task_cgroup->parent, task_cgroup->name, 0755) < 0 && errno != EEXIST) {
        return -1;
    }
    task_cgroup->directory = descriptor_out_of_the_way(
        openat(task_cgroup->parent, task_cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (task_cgroup->directory < 0) {
        return -1;
    }
    task_cgroup->kill = open_file(task_cgroup, "cgroup.kill", O_WRONLY);
    task_cgroup->events = open_file(task_cgroup, "cgroup.events", O_RDONLY);
    if (task_cgroup->kill < 0 || task_cgroup->events < 0) {
        return -1;
    }
    (void)control_file_write(task_cgroup->directory, "cgroup.max.descendants",
                             MOST_BELOW); /* since 4.14 */
    open_accounts(task_cgroup);
    task_cgroup->bounds = (struct bounds){0};
    task_cgroup->dirty = false;
    task_cgroup->made_ns = clock_boot_ns();
    task_cgroup->cpu_us = task_cgroup->peak = task_cgroup->oom_kills = task_cgroup->io_read =
        task_cgroup->io_written = 0;
    return 0;
}

/* Removes the cgroup and all below it. Returns 0, or -1 with errno. */
static int drop(struct task_cgroup *task_cgroup)
{
    if (task_cgroup->directory >= 0 && hierarchy_clear(task_cgroup->directory) < 0) {
        return -1;
    }
    close_files(task_cgroup);
    return unlinkat(task_cgroup->parent, task_cgroup->name, AT_REMOVEDIR) < 0 && errno != ENOENT
               ? -1
               : 0;
}

struct task_cgroup *task_cgroup_new(int directory, size_t number, unsigned controllers)
{
    struct task_cgroup *task_cgroup = calloc(1, sizeof *task_cgroup);
    if (!task_cgroup) {
        return NULL;
    }
    task_cgroup->parent = directory;
    task_cgroup->controllers = controllers;
    task_cgroup->directory = task_cgroup->kill = task_cgroup->events = -1;
    task_cgroup->cpu_stat = task_cgroup->memory_peak = task_cgroup->memory_events =
        task_cgroup->io_stat = -1;
    (void)snprintf(task_cgroup->name, sizeof task_cgroup->name, "%zu", number);
    if (make(task_cgroup) < 0) {
        int error = errno;
        task_cgroup_free(task_cgroup);
        errno = error;
        return NULL;
    }
    return task_cgroup;
}

void task_cgroup_free(struct task_cgroup *task_cgroup)
{
    if (task_cgroup) {
        (void)drop(task_cgroup); /* if it is not empty, it is cleared at the next start */
        close_files(task_cgroup);
        free(task_cgroup);
    }
}

/* ---- before a task ---- */

/* A directory has two links and one more per directory below: a task may have created cgroups. */
static bool has_groups_below(const struct task_cgroup *task_cgroup)
{
    struct stat status;
    return fstat(task_cgroup->directory, &status) < 0 || status.st_nlink > 2;
}

/* Returns true if this kernel can enforce the limit here. The daemon has logged those that cannot
 * be enforced. */
static bool is_held(const struct task_cgroup *task_cgroup, size_t bound)
{
    return (bounds_controller_of(bound) & task_cgroup->controllers) &&
           (bound != TASK_IO_WEIGHT || task_cgroup->has_io_weight);
}

/* Writes the limits that differ from the last task's. Returns 0; or -1 with errno and the file's
 * name. */
static int set_bounds(struct task_cgroup *task_cgroup, const struct bounds *bounds,
                      const char **what)
{
    for (size_t i = 0; i < TASK_BOUNDS; i++) {
        if (bounds->values[i] == task_cgroup->bounds.values[i] || !is_held(task_cgroup, i)) {
            continue;
        }
        if (bounds_write(task_cgroup->directory, i, bounds->values[i]) < 0) {
            *what = bounds_file(i);
            task_cgroup->dirty = true;
            return -1;
        }
        task_cgroup->bounds.values[i] = bounds->values[i];
    }
    return 0;
}

static bool hides_peaks(const struct task_cgroup *task_cgroup)
{
    return task_cgroup->peak > 0 && !task_cgroup->peak_resets &&
           clock_boot_ns() - task_cgroup->made_ns >= REMAKE_NS;
}

/* Whether memory that earlier tasks have left, such as that of files in /dev/shm, would count for
 * the next one. It stays with a cgroup that is removed. Empty files there take memory of the
 * kernel, which counts as a cache, but cannot be dropped. Other caches do not matter. */
static bool has_remains(const struct task_cgroup *task_cgroup, const struct bounds *bounds)
{
    int64_t high = bounds->values[TASK_MEMORY_HIGH], limit = bounds->values[TASK_MEMORY_MAX];
    char text[STAT_SIZE];
    limit = limit == 0 || (high > 0 && high < limit) ? high : limit;
    /* most tasks leave little, and memory.stat takes longer to read */
    return limit > 0 && (task_cgroup->controllers & BOUNDS_MEMORY) &&
           control_file_read_at(task_cgroup->directory, "memory.current", text, sizeof text) > 0 &&
           strtoll(text, NULL, 10) >= limit / REMAINS_PART &&
           control_file_read_at(task_cgroup->directory, "memory.stat", text, sizeof text) > 0 &&
           control_file_value(text, "shmem") + control_file_value(text, "slab") >=
               limit / REMAINS_PART;
}

int task_cgroup_prepare(struct task_cgroup *task_cgroup, const struct bounds *bounds,
                        const char **what)
{
    *what = task_cgroup->name;
    bool missing = task_cgroup->directory < 0;
    if (missing || task_cgroup->dirty || has_groups_below(task_cgroup) ||
        hides_peaks(task_cgroup) || has_remains(task_cgroup, bounds)) {
        task_cgroup->dirty = true; /* make() clears it */
        /* a task of leatd's user may have frozen the cgroups of all tasks */
        (void)control_file_write(task_cgroup->parent, "cgroup.freeze", "0");
        if (drop(task_cgroup) < 0 || make(task_cgroup) < 0) {
            return -1;
        }
    }
    if (task_cgroup->peak_resets && write(task_cgroup->memory_peak, "0", 1) < 0) {
        task_cgroup->peak_resets = false;
    }
    return set_bounds(task_cgroup, bounds, what);
}

int task_cgroup_directory(const struct task_cgroup *task_cgroup)
{
    return task_cgroup->directory;
}

int task_cgroup_kill_fd(const struct task_cgroup *task_cgroup)
{
    return task_cgroup->kill;
}

int task_cgroup_events_fd(const struct task_cgroup *task_cgroup)
{
    return task_cgroup->events;
}

int64_t task_cgroup_version(const struct task_cgroup *task_cgroup)
{
    return task_cgroup->made_ns;
}

void task_cgroup_doubt(struct task_cgroup *task_cgroup)
{
    task_cgroup->dirty = true;
}

/* ---- during a task, and after it ---- */

void task_cgroup_kill(struct task_cgroup *task_cgroup)
{
    /* The write fails if somebody has removed the cgroup, which is possible only when it is empty.
     * A cgroup that was ever killed is not used again: newer kernels (seen with 6.18) also kill
     * what clone3 starts in it later. */
    ssize_t written = write(task_cgroup->kill, "1", 1);
    (void)written;
    task_cgroup->dirty = true;
}

bool task_cgroup_is_empty(struct task_cgroup *task_cgroup)
{
    char text[128];
    if (control_file_read(task_cgroup->events, text, sizeof text) < 0) {
        task_cgroup->dirty = true;
        return errno == ENODEV; /* somebody has removed it, so it was empty */
    }
    /* a child that is started in a frozen cgroup would stop, and the daemon waits for the child */
    task_cgroup->dirty = task_cgroup->dirty || control_file_value(text, "frozen") > 0;
    return control_file_value(text, "populated") == 0;
}

pid_t task_cgroup_member(const struct task_cgroup *task_cgroup)
{
    char text[32];
    return control_file_read_at(task_cgroup->directory, "cgroup.procs", text, sizeof text) > 0
               ? (pid_t)strtol(text, NULL, 10)
               : 0;
}

/* Returns by how much the counter has grown, and updates *last. */
static int64_t growth(int64_t now, int64_t *last)
{
    int64_t grown = now > *last ? now - *last : 0;
    *last = now > *last ? now : *last;
    return grown;
}

static void read_memory(struct task_cgroup *task_cgroup, struct usage *usage)
{
    char text[STAT_SIZE];
    if (control_file_read(task_cgroup->memory_events, text, sizeof text) > 0) {
        usage->items[USAGE_OOM_KILLS] =
            growth(control_file_value(text, "oom_kill"), &task_cgroup->oom_kills);
    }
    if (task_cgroup->memory_peak >= 0 &&
        control_file_read(task_cgroup->memory_peak, text, sizeof text) > 0) {
        int64_t peak = strtoll(text, NULL, 10);
        usage->items[USAGE_MEMORY_PEAK] =
            task_cgroup->peak_resets || peak > task_cgroup->peak ? peak : -1;
        task_cgroup->peak = peak;
    }
}

void task_cgroup_usage(struct task_cgroup *task_cgroup, struct usage *usage)
{
    char text[STAT_SIZE];
    if (task_cgroup->cpu_stat >= 0 &&
        control_file_read(task_cgroup->cpu_stat, text, sizeof text) > 0) {
        usage->items[USAGE_CPU_US] =
            growth(control_file_value(text, "usage_usec"), &task_cgroup->cpu_us);
    }
    if (task_cgroup->memory_events >= 0) {
        read_memory(task_cgroup, usage);
    }
    if (task_cgroup->io_stat >= 0 &&
        control_file_read(task_cgroup->io_stat, text, sizeof text) >= 0) {
        usage->items[USAGE_IO_READ] =
            growth(control_file_sum(text, "rbytes"), &task_cgroup->io_read);
        usage->items[USAGE_IO_WRITTEN] =
            growth(control_file_sum(text, "wbytes"), &task_cgroup->io_written);
    }
}
