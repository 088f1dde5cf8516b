/* The cgroup of a process, from the kernel's texts; small files; limits. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process/control_file.h"
#include "exec/cgroup/bounds.h"
#include "exec/cgroup/hierarchy.h"
#include "exec/cgroup/usage.h"
#include "queue/task_bounds.h"

#define ROOT_MOUNT "24 1 0:21 / / rw shared:1 - ext4 /dev/vda rw\n"

static void check(const char *mounts, const char *groups, const char *path, const char *inside)
{
    char found[PATH_MAX], found_inside[PATH_MAX], *text = strdup(mounts);
    assert_non_null(text);
    size_t mount = hierarchy_locate(text, groups, found, found_inside);
    assert_string_equal(found, path);
    assert_true(mount <= strlen(path) && (mount > 0) == (*path != '\0'));
    assert_string_equal(found_inside, inside);
    free(text);
}

/* Goal: the group is found below the mount, with either kind of hierarchy and any tags. */
static void groups_are_located(void **state)
{
    (void)state;
    static const char unified[] =
        ROOT_MOUNT "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw\n";
    check(unified, "0::/system.slice/leatd@q.service\n",
          "/sys/fs/cgroup/system.slice/leatd@q.service", "/system.slice/leatd@q.service");
    check(unified, "0::/\n", "/sys/fs/cgroup", "/");
    check("31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
          "32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
          "4:memory:/other\n1:name=systemd:/a\n0::/a/b", "/sys/fs/cgroup/unified/a/b", "/a/b");
    check("32 24 0:28 / /mnt/with\\040space rw - cgroup2 cgroup2 rw\n", "0::/a\n",
          "/mnt/with space/a", "/a");
}

/* Goal: in a mounted part of the hierarchy only groups below it are found; a mount of the root
 * is preferred. */
static void parts_are_located(void **state)
{
    (void)state;
    static const char part[] = "30 24 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    static const char both[] = "30 24 0:26 /docker/x /part rw - cgroup2 cgroup2 rw\n"
                               "31 24 0:26 / /whole rw - cgroup2 cgroup2 rw\n";
    check(part, "0::/docker/x/y\n", "/sys/fs/cgroup/y", "/docker/x/y");
    check(part, "0::/docker/x\n", "/sys/fs/cgroup", "/docker/x");
    check(part, "0::/docker/xy\n", "", "");
    check(part, "0::/\n", "", "");
    check(both, "0::/docker/xy\n", "/whole/docker/xy", "/docker/xy");
}

/* Goal: if no group is visible, none is found. */
static void nothing_is_located(void **state)
{
    (void)state;
    static const char unified[] = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    check(ROOT_MOUNT, "0::/a\n", "", "");
    check(unified, "1:name=systemd:/a\n", "", "");
    check(unified, "0::/../../other\n", "", "");
    check(unified, "0::/gone (deleted)\n", "", "");
    check("", "", "", "");
    check("30 24 0:26 /\n30 24\n - cgroup2\n", "0::/a\n", "", "");
}

/* Goal: values are found by their whole key; values on several lines are added up. */
static void values_are_found(void **state)
{
    (void)state;
    static const char events[] = "low 0\noom 7\noom_kill 3\noom_group_kill 1\n";
    assert_int_equal(control_file_value(events, "oom_kill"), 3);
    assert_int_equal(control_file_value(events, "oom"), 7);
    assert_int_equal(control_file_value(events, "kill"), -1);
    assert_int_equal(control_file_value("", "oom"), -1);
    static const char io[] = "8:0 rbytes=10 wbytes=200 rios=1\n8:16 rbytes=5 wbytes=1 rios=1\n";
    assert_int_equal(control_file_sum(io, "rbytes"), 15);
    assert_int_equal(control_file_sum(io, "wbytes"), 201);
    assert_int_equal(control_file_sum(io, "bytes"), 0);
    assert_int_equal(control_file_sum("", "rbytes"), 0);
}

static struct task with(size_t bound, int64_t value)
{
    struct task task = {0};
    task.bounds[bound] = value;
    return task;
}

/* Goal: a task lowers the queue's limits and raises none, also not a weight above the kernel's
 * default. */
static void tasks_only_lower(void **state)
{
    (void)state;
    struct config config = {.isolation = {.memory_max = 1000, .cpu_max = 50}};
    struct bounds bounds;
    struct task task = with(TASK_MEMORY_MAX, 999);
    bounds_make(&bounds, &config, &task);
    assert_int_equal(bounds.values[TASK_MEMORY_MAX], 999);
    assert_int_equal(bounds.values[TASK_CPU_MAX], 50);
    assert_int_equal(bounds.values[TASK_PIDS_MAX], 0);

    task = with(TASK_MEMORY_MAX, 1001);
    bounds_make(&bounds, &config, &task);
    assert_int_equal(bounds.values[TASK_MEMORY_MAX], 1000);
    task = with(TASK_PIDS_MAX, 7);
    bounds_make(&bounds, &config, &task);
    assert_int_equal(bounds.values[TASK_PIDS_MAX], 7);

    task = with(TASK_CPU_WEIGHT, 101);
    bounds_make(&bounds, &config, &task);
    assert_int_equal(bounds.values[TASK_CPU_WEIGHT], 0);
    task = with(TASK_CPU_WEIGHT, 99);
    bounds_make(&bounds, &config, &task);
    assert_int_equal(bounds.values[TASK_CPU_WEIGHT], 99);
    config.isolation.io_weight = 500;
    task = with(TASK_IO_WEIGHT, 400);
    bounds_make(&bounds, &config, &task);
    assert_int_equal(bounds.values[TASK_IO_WEIGHT], 400);
    bounds_make(&bounds, &config, NULL);
    assert_int_equal(bounds.values[TASK_IO_WEIGHT], 500);
}

/* Goal: limits are written in the kernel's form, and removed again. */
static void bounds_are_written(void **state)
{
    (void)state;
    static const struct {
        enum task_bound bound;
        int64_t value;
        const char *set, *standard;
    } cases[] = {
        {TASK_MEMORY_MAX, 1 << 20, "1048576", "max"},       {TASK_PIDS_MAX, 5, "5", "max"},
        {TASK_CPU_MAX, 150, "150000 100000", "max 100000"}, {TASK_CPU_WEIGHT, 10, "10", "100"},
        {TASK_IO_WEIGHT, 10, "default 10", "default 100"},
    };
    char folder[] = "/tmp/leat-bounds-XXXXXX", text[64];
    assert_non_null(mkdtemp(folder));
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(directory >= 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *file = bounds_file(cases[i].bound);
        assert_int_equal(bounds_write(directory, cases[i].bound, cases[i].value), -1);
        for (int step = 0; step < 2; step++) {
            int fd = openat(directory, file, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
            assert_true(fd >= 0);
            close(fd);
            int64_t value = step == 0 ? cases[i].value : 0;
            assert_int_equal(bounds_write(directory, cases[i].bound, value), 0);
            assert_true(control_file_read_at(directory, file, text, sizeof text) > 0);
            assert_string_equal(text, step == 0 ? cases[i].set : cases[i].standard);
        }
        assert_int_equal(unlinkat(directory, file, 0), 0);
    }
    close(directory);
    assert_int_equal(rmdir(folder), 0);
}

/* Goal: fields of tasks are read in their forms and no others; an empty one means nothing. */
static void fields_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        int64_t taken; /* -1: refused */
    } cases[] = {
        {"memory_max", "64M", 64 << 20}, {"memory_max", "", 0},       {"memory_max", "0", -1},
        {"memory_max", "1M", 1 << 20},   {"memory_max", "1", -1},     {"memory_high", "1023K", -1},
        {"memory_high", "1G1", -1},      {"pids_max", "10", 10},      {"pids_max", "0", -1},
        {"cpu_max", "150%", 150},        {"cpu_max", "50", -1},       {"cpu_max", "0%", -1},
        {"cpu_weight", "10000", 10000},  {"cpu_weight", "10001", -1}, {"io_weight", "-1", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct task task = {0};
        const struct bytes name = {cases[i].name, strlen(cases[i].name)};
        const struct bytes value = {cases[i].value, strlen(cases[i].value)};
        size_t bound = task_bound_named(name);
        assert_true(bound < TASK_BOUNDS);
        const char *form = task_bound_take(task.bounds, bound, &value);
        assert_true((form != NULL) == (cases[i].taken < 0));
        if (!form) {
            assert_int_equal(task.bounds[bound], cases[i].taken);
            assert_true(task_is_bounded(task.bounds) == (cases[i].taken > 0));
        }
    }
    const struct bytes other = {"memory_ma", 9}, cut = {"10\0", 3};
    struct task task = {0};
    assert_int_equal(task_bound_named(other), TASK_BOUNDS);
    assert_non_null(task_bound_take(task.bounds, TASK_PIDS_MAX, &cut));
}

/* Goal: unknown values are left out; the largest numbers fit. */
static void usage_is_told(void **state)
{
    (void)state;
    char text[USAGE_TEXT];
    struct usage usage = USAGE_NONE;
    usage_format(&usage, text, sizeof text);
    assert_string_equal(text, "");
    usage.items[USAGE_CPU_US] = 12;
    usage.items[USAGE_OOM_KILLS] = 0;
    usage_format(&usage, text, sizeof text);
    assert_string_equal(text, "cpu_us 12 oom_kills 0");
    for (size_t i = 0; i < USAGE_ITEMS; i++) {
        usage.items[i] = INT64_MAX;
    }
    usage_format(&usage, text, sizeof text);
    assert_string_equal(text + strlen(text) - 30, "io_written 9223372036854775807");
}

/* Goal: the last part of a path is cut off if it has that name, also before the inode of a
 * namespace; other paths stay. */
static void names_are_left(void **state)
{
    (void)state;
    static const struct {
        const char *path, *name, *left_path, *left_name;
    } cases[] = {
        {"/cg/a/daemon", "/a/daemon", "/cg/a", "/a"},
        {"/cg/a#b/daemon", "/a#b/daemon", "/cg/a#b", "/a#b"},
        {"/cg/daemon", "/daemon#17", "/cg", "#17"},
        {"/cg/a/xdaemon", "/a/daemons", "/cg/a/xdaemon", "/a/daemons"},
        {"", "-", "", "-"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hierarchy hierarchy;
        (void)snprintf(hierarchy.path, sizeof hierarchy.path, "%s", cases[i].path);
        (void)snprintf(hierarchy.name, sizeof hierarchy.name, "%s", cases[i].name);
        hierarchy_leave(&hierarchy, "daemon");
        assert_string_equal(hierarchy.path, cases[i].left_path);
        assert_string_equal(hierarchy.name, cases[i].left_name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_located), cmocka_unit_test(parts_are_located),
        cmocka_unit_test(names_are_left),     cmocka_unit_test(nothing_is_located),
        cmocka_unit_test(values_are_found),   cmocka_unit_test(tasks_only_lower),
        cmocka_unit_test(bounds_are_written), cmocka_unit_test(fields_are_taken),
        cmocka_unit_test(usage_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
