#include "exec/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/control.h"
#include "exec/descriptor.h"
#include "exec/hierarchy.h"

/* Before Linux 6.12 memory.peak cannot be set back, and tells of a task only where it used more
 * than those before it. So the group is made anew for it; but not more often than this, since the
 * kernel keeps what is left of each for a while. */
#define REMAKE_NS CLOCK_NS_PER_S

enum { STAT_SIZE = 4096 };

/* How many groups a task may make below its own. They are removed while the daemon waits. */
#define MOST_BELOW "250"

struct cell {
    int parent;
    char name[24];
    unsigned controllers;
    int directory, kill, events;                       /* -1 while there is no group */
    int cpu_stat, memory_peak, memory_events, io_stat; /* -1 where the kernel has none */
    struct bounds bounds;                              /* as they stand in the files */
    bool dirty;                                        /* the next task needs another group */
    bool peak_resets; /* memory.peak counts from the last writing on */
    bool weighs;      /* there is io.weight: not every kernel has a way to weigh */
    int64_t made_ns;
    /* what the files said after the last task */
    int64_t cpu_us, peak, oom_kills, io_read, io_written;
};

static void close_files(struct cell *cell)
{
    descriptor_close(&cell->directory);
    descriptor_close(&cell->kill);
    descriptor_close(&cell->events);
    descriptor_close(&cell->cpu_stat);
    descriptor_close(&cell->memory_peak);
    descriptor_close(&cell->memory_events);
    descriptor_close(&cell->io_stat);
}

/* ---- making ---- */

static int open_file(const struct cell *cell, const char *name, int mode)
{
    return descriptor_out_of_the_way(openat(cell->directory, name, mode | O_CLOEXEC));
}

static void open_accounts(struct cell *cell)
{
    cell->cpu_stat = open_file(cell, "cpu.stat", O_RDONLY);
    if (cell->controllers & BOUNDS_MEMORY) {
        cell->memory_events = open_file(cell, "memory.events", O_RDONLY);
        cell->memory_peak = open_file(cell, "memory.peak", O_RDWR);
        cell->peak_resets = cell->memory_peak >= 0 && write(cell->memory_peak, "0", 1) == 1;
        if (cell->memory_peak < 0) {
            cell->memory_peak = open_file(cell, "memory.peak", O_RDONLY);
        }
        /* a task is one thing: without one of its processes the rest is not to go on */
        (void)control_write(cell->directory, "memory.oom.group", "1"); /* since Linux 4.19 */
    }
    if (cell->controllers & BOUNDS_IO) {
        cell->weighs = faccessat(cell->directory, bounds_file(TASK_IO_WEIGHT), F_OK, 0) == 0;
        cell->io_stat = open_file(cell, "io.stat", O_RDONLY);
    }
}

/* Returns 0, or -1 with errno. */
static int make(struct cell *cell)
{
    if (mkdirat(cell->parent, cell->name, 0755) < 0 && errno != EEXIST) {
        return -1;
    }
    cell->directory = descriptor_out_of_the_way(
        openat(cell->parent, cell->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (cell->directory < 0) {
        return -1;
    }
    cell->kill = open_file(cell, "cgroup.kill", O_WRONLY);
    cell->events = open_file(cell, "cgroup.events", O_RDONLY);
    if (cell->kill < 0 || cell->events < 0) {
        return -1;
    }
    (void)control_write(cell->directory, "cgroup.max.descendants", MOST_BELOW); /* since 4.14 */
    open_accounts(cell);
    cell->bounds = (struct bounds){0};
    cell->dirty = false;
    cell->made_ns = clock_boot_ns();
    cell->cpu_us = cell->peak = cell->oom_kills = cell->io_read = cell->io_written = 0;
    return 0;
}

/* Removes the group and all below it. Returns 0, or -1 with errno. */
static int drop(struct cell *cell)
{
    if (cell->directory >= 0 && hierarchy_clear(cell->directory) < 0) {
        return -1;
    }
    close_files(cell);
    return unlinkat(cell->parent, cell->name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

struct cell *cell_new(int directory, size_t number, unsigned controllers)
{
    struct cell *cell = calloc(1, sizeof *cell);
    if (!cell) {
        return NULL;
    }
    cell->parent = directory;
    cell->controllers = controllers;
    cell->directory = cell->kill = cell->events = -1;
    cell->cpu_stat = cell->memory_peak = cell->memory_events = cell->io_stat = -1;
    (void)snprintf(cell->name, sizeof cell->name, "%zu", number); /* fits */
    if (make(cell) < 0) {
        int error = errno;
        cell_free(cell);
        errno = error;
        return NULL;
    }
    return cell;
}

void cell_free(struct cell *cell)
{
    if (cell) {
        (void)drop(cell); /* what lives in it goes on, and is found at the next start */
        close_files(cell);
        free(cell);
    }
}

/* ---- before a task ---- */

/* A directory has two links, and one more for each below it: a task may have made groups. */
static bool has_groups_below(const struct cell *cell)
{
    struct stat status;
    return fstat(cell->directory, &status) < 0 || status.st_nlink > 2;
}

/* What cannot be held here is not, as the daemon has said where the config asks for it. */
static bool is_held(const struct cell *cell, size_t bound)
{
    return (bounds_controller_of(bound) & cell->controllers) &&
           (bound != TASK_IO_WEIGHT || cell->weighs);
}

/* Returns 0; or -1 with errno and the file's name. */
static int set_bounds(struct cell *cell, const struct bounds *bounds, const char **what)
{
    for (size_t i = 0; i < TASK_BOUNDS; i++) {
        if (bounds->values[i] == cell->bounds.values[i] || !is_held(cell, i)) {
            continue;
        }
        if (bounds_write(cell->directory, i, bounds->values[i]) < 0) {
            *what = bounds_file(i);
            cell->dirty = true;
            return -1;
        }
        cell->bounds.values[i] = bounds->values[i];
    }
    return 0;
}

static bool hides_peaks(const struct cell *cell)
{
    return cell->peak > 0 && !cell->peak_resets && clock_boot_ns() - cell->made_ns >= REMAKE_NS;
}

int cell_prepare(struct cell *cell, const struct bounds *bounds, const char **what)
{
    *what = cell->name;
    bool missing = cell->directory < 0;
    if (missing || cell->dirty || has_groups_below(cell) || hides_peaks(cell)) {
        cell->dirty = true; /* until it is there again */
        if (drop(cell) < 0 || make(cell) < 0) {
            return -1;
        }
    }
    if (cell->peak_resets && write(cell->memory_peak, "0", 1) < 0) {
        cell->peak_resets = false;
    }
    return set_bounds(cell, bounds, what);
}

int cell_directory(const struct cell *cell)
{
    return cell->directory;
}

int cell_kill_fd(const struct cell *cell)
{
    return cell->kill;
}

int cell_events_fd(const struct cell *cell)
{
    return cell->events;
}

int64_t cell_mark(const struct cell *cell)
{
    return cell->made_ns;
}

void cell_doubt(struct cell *cell)
{
    cell->dirty = true;
}

/* ---- during it, and after ---- */

void cell_kill(struct cell *cell)
{
    /* It fails where the group was taken away, which needs an empty one. A group that was ever
     * killed is of no more use: with newer kernels (seen with 6.18) what clone3 starts in it gets
     * the KILL, too. */
    ssize_t written = write(cell->kill, "1", 1);
    (void)written;
    cell->dirty = true;
}

bool cell_is_empty(struct cell *cell)
{
    char text[128];
    if (control_read(cell->events, text, sizeof text) < 0) {
        cell->dirty = true;
        return errno == ENODEV; /* somebody has removed the group, which needs an empty one */
    }
    /* whoever was started in a frozen group would stand still, and the daemon with it */
    cell->dirty = cell->dirty || control_value(text, "frozen") > 0;
    return control_value(text, "populated") == 0;
}

pid_t cell_member(const struct cell *cell)
{
    char text[32];
    return control_read_file(cell->directory, "cgroup.procs", text, sizeof text) > 0
               ? (pid_t)strtol(text, NULL, 10)
               : 0;
}

/* How much it has grown; *last follows. */
static int64_t growth(int64_t now, int64_t *last)
{
    int64_t grown = now > *last ? now - *last : 0;
    *last = now > *last ? now : *last;
    return grown;
}

static void read_memory(struct cell *cell, struct usage *usage)
{
    char text[STAT_SIZE];
    if (control_read(cell->memory_events, text, sizeof text) > 0) {
        usage->items[USAGE_OOM_KILLS] = growth(control_value(text, "oom_kill"), &cell->oom_kills);
    }
    if (cell->memory_peak >= 0 && control_read(cell->memory_peak, text, sizeof text) > 0) {
        int64_t peak = strtoll(text, NULL, 10);
        usage->items[USAGE_MEMORY_PEAK] = cell->peak_resets || peak > cell->peak ? peak : -1;
        cell->peak = peak;
    }
}

void cell_usage(struct cell *cell, struct usage *usage)
{
    char text[STAT_SIZE];
    if (cell->cpu_stat >= 0 && control_read(cell->cpu_stat, text, sizeof text) > 0) {
        usage->items[USAGE_CPU_US] = growth(control_value(text, "usage_usec"), &cell->cpu_us);
    }
    if (cell->memory_events >= 0) {
        read_memory(cell, usage);
    }
    if (cell->io_stat >= 0 && control_read(cell->io_stat, text, sizeof text) >= 0) {
        usage->items[USAGE_IO_READ] = growth(control_sum(text, "rbytes"), &cell->io_read);
        usage->items[USAGE_IO_WRITTEN] = growth(control_sum(text, "wbytes"), &cell->io_written);
    }
}
