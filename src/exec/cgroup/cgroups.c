#include "exec/cgroup/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/control_file.h"
#include "queue/task_bounds.h"

enum {
    LEFTOVERS_MS = 20000, /* how long killed processes may take to die; the kernel's to blame */
    LOCK_MS = 1000,       /* how long another worker's lock may last, */
    LOCK_PAUSE_MS = 5,    /* and between looks at it */
    CONTROLLERS = 4,
};

static const char leaf_name[] = "daemon", tasks_name[] = "tasks";

static const enum bounds_controller controllers[CONTROLLERS] = {BOUNDS_CPU, BOUNDS_IO,
                                                                BOUNDS_MEMORY, BOUNDS_PIDS};

struct cgroups {
    int unit, tasks; /* directories */
    unsigned controllers;
    struct task_cgroup **task_cgroups; /* by place; owned, NULL where there was none yet */
    size_t task_cgroup_count;
};

/* ---- the tree ---- */

/* The group below, made if need be. Returns its directory, or -1 with errno. */
static int open_below(int directory, const char *name)
{
    if (mkdirat(directory, name, 0755) < 0 && errno != EEXIST) {
        return -1;
    }
    return openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Into a new one where that can be, since somebody may have killed the former: see cell_kill, for
 * which it is the same on whose side that was. Where a former guard still is at work, nobody has.
 */
static int move_to_leaf(int unit)
{
    (void)unlinkat(unit, leaf_name, AT_REMOVEDIR);
    int leaf = open_below(unit, leaf_name);
    if (leaf < 0) {
        return -1;
    }
    int result = control_write(leaf, "cgroup.procs", "0");
    int error = errno;
    close(leaf);
    errno = error;
    return result;
}

/* For the groups below: sign '+' gives them the controllers that there are, '-' takes them away.
 * One by one, since none of them is needed. */
static void set_controllers(int directory, char sign)
{
    char text[32];
    for (size_t i = 0; i < CONTROLLERS; i++) {
        (void)snprintf(text, sizeof text, "%c%s", sign,
                       bounds_controller_name(controllers[i]));         /* fits */
        (void)control_write(directory, "cgroup.subtree_control", text); /* what is set is read */
    }
}

/* Returns those that groups below have. */
static unsigned enable(int directory)
{
    char text[256];
    set_controllers(directory, '+');
    unsigned enabled = 0;
    if (control_read_file(directory, "cgroup.subtree_control", text, sizeof text) > 0) {
        char *rest = NULL;
        for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
            for (size_t i = 0; i < CONTROLLERS; i++) {
                bool same = strcmp(word, bounds_controller_name(controllers[i])) == 0;
                enabled |= same ? (unsigned)controllers[i] : 0;
            }
        }
    }
    return enabled;
}

/* Waits until nothing lives in the group. Returns 0, or -1 with errno. */
static int await_empty(int directory)
{
    int events = openat(directory, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (events < 0) {
        return -1;
    }
    int64_t until_ns = clock_boot_ns() + LEFTOVERS_MS * CLOCK_NS_PER_MS;
    char text[128];
    int result = 0;
    while (result == 0 && control_read(events, text, sizeof text) > 0 &&
           control_value(text, "populated") != 0) {
        int64_t left_ms = (until_ns - clock_boot_ns()) / CLOCK_NS_PER_MS;
        struct pollfd change = {.fd = events, .events = POLLPRI};
        if (left_ms <= 0) {
            errno = EBUSY;
            result = -1;
        } else if (poll(&change, 1, (int)left_ms) < 0 && errno != EINTR) {
            result = -1;
        }
    }
    int error = errno;
    close(events);
    errno = error;
    return result;
}

/* A worker that was killed a moment ago may have left a child that shares its descriptors until it
 * executes, or the guards have ended it. Returns 0, or -1 with errno. */
static int lock(int directory)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * CLOCK_NS_PER_MS};
    int64_t until_ns = clock_boot_ns() + LOCK_MS * CLOCK_NS_PER_MS;
    while (flock(directory, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK || clock_boot_ns() >= until_ns) {
            return -1;
        }
        (void)nanosleep(&pause, NULL); /* shorter where a signal comes */
    }
    return 0;
}

static int grow(struct cgroups *cgroups, size_t count)
{
    struct task_cgroup **task_cgroups =
        reallocarray(cgroups->task_cgroups, count, sizeof(struct task_cgroup *));
    if (!task_cgroups) {
        return -1;
    }
    for (size_t i = cgroups->task_cgroup_count; i < count; i++) {
        task_cgroups[i] = NULL;
    }
    cgroups->task_cgroups = task_cgroups;
    cgroups->task_cgroup_count = count;
    return 0;
}

/* Returns NULL with errno. */
static struct task_cgroup *task_cgroup_at(struct cgroups *cgroups, size_t slot_index)
{
    if (slot_index >= cgroups->task_cgroup_count && grow(cgroups, slot_index + 1) < 0) {
        return NULL;
    }
    if (!cgroups->task_cgroups[slot_index]) {
        cgroups->task_cgroups[slot_index] =
            task_cgroup_new(cgroups->tasks, slot_index, cgroups->controllers);
    }
    return cgroups->task_cgroups[slot_index];
}

/* Returns NULL, or what could not be done, with errno. */
static const char *build(struct cgroups *cgroups, const char *path)
{
    cgroups->unit = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroups->unit < 0) {
        return "cannot be opened";
    }
    cgroups->tasks = open_below(cgroups->unit, tasks_name);
    if (cgroups->tasks < 0) {
        return "no groups can be made in it";
    }
    if (faccessat(cgroups->tasks, "cgroup.kill", W_OK, AT_EACCESS) < 0) {
        return "its groups have no cgroup.kill, which Linux 5.14 brought";
    }
    if (lock(cgroups->tasks) < 0) {
        return "another leatd runs tasks in it";
    }
    if (move_to_leaf(cgroups->unit) < 0) {
        return "the daemon cannot move into a group of its own there";
    }
    if (control_write(cgroups->tasks, "cgroup.kill", "1") < 0 || await_empty(cgroups->tasks) < 0 ||
        hierarchy_clear(cgroups->tasks) < 0) {
        return "what an earlier worker has left there does not end";
    }
    cgroups->controllers = enable(cgroups->unit);
    cgroups->controllers = cgroups->controllers ? enable(cgroups->tasks) : 0;

    /* whether tasks can be started with what the config asks for shows with the first group */
    return task_cgroup_at(cgroups, 0) ? NULL : "no groups for tasks can be made in it";
}

/* ---- what the config asks for ---- */

/* io.weight has a file only where the kernel has a way to weigh. */
static bool is_held(const struct cgroups *cgroups, size_t bound)
{
    return cgroups && (bounds_controller_of(bound) & cgroups->controllers) &&
           faccessat(task_cgroup_directory(cgroups->task_cgroups[0]), bounds_file(bound), W_OK,
                     AT_EACCESS) == 0;
}

void cgroups_missing(const struct cgroups *cgroups, const struct config *config, char *text,
                     size_t size)
{
    struct bounds bounds;
    bounds_make(&bounds, config, NULL);
    text[0] = '\0';
    for (size_t i = 0; i < TASK_BOUNDS; i++) {
        if (bounds.values[i] > 0 && !is_held(cgroups, i)) {
            size_t used = strlen(text);
            (void)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "",
                           task_bound_name(i)); /* cut where it is too long */
        }
    }
}

void cgroups_controllers(const struct cgroups *cgroups, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < CONTROLLERS; i++) {
        if (cgroups->controllers & controllers[i]) {
            size_t used = strlen(text);
            (void)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "",
                           bounds_controller_name(controllers[i])); /* fits */
        }
    }
    if (text[0] == '\0') {
        (void)snprintf(text, size, "none");
    }
}

/* ---- life ---- */

static struct cgroups *new_cgroups(void)
{
    struct cgroups *cgroups = calloc(1, sizeof *cgroups);
    if (cgroups) {
        cgroups->unit = cgroups->tasks = -1;
    }
    return cgroups;
}

/* A daemon that may not make groups has none by default, and one that may and cannot is told so. */
static enum cgroups_state refuse(const struct config *config)
{
    return config->isolation.cgroup == CONFIG_CGROUP_REQUIRED ? CGROUPS_FAILED : CGROUPS_UNUSED;
}

enum cgroups_state cgroups_new(const struct config *config, const struct hierarchy *hierarchy,
                               struct cgroups **cgroups, char *text, size_t size)
{
    *cgroups = NULL;
    text[0] = '\0';
    if (config->isolation.cgroup == CONFIG_CGROUP_OFF) {
        return CGROUPS_UNUSED;
    }
    if (hierarchy->path[0] == '\0') {
        (void)snprintf(text, size, "this process has no cgroup v2 that it can see"); /* fits */
        return refuse(config);
    }
    if (config->isolation.cgroup == CONFIG_CGROUP_AUTO &&
        !hierarchy_is_delegated(hierarchy->path)) {
        return CGROUPS_UNUSED;
    }
    struct cgroups *made = new_cgroups();
    const char *problem = made ? build(made, hierarchy->path) : "out of memory";
    if (problem) {
        /* cut where it is too long */
        (void)snprintf(text, size, "%s: %s: %s", hierarchy->path, problem,
                       strerror(made ? errno : ENOMEM));
        cgroups_free(made);
        return refuse(config);
    }
    *cgroups = made;
    return CGROUPS_USED;
}

int cgroups_prepare(struct cgroups *cgroups, size_t slot_index, const struct config *config,
                    const struct task *task, struct task_cgroup **task_cgroup, char *reason,
                    size_t reason_size)
{
    struct bounds bounds;
    const char *what = "tasks";
    bounds_make(&bounds, config, task);
    *task_cgroup = task_cgroup_at(cgroups, slot_index);
    if (!*task_cgroup || task_cgroup_prepare(*task_cgroup, &bounds, &what) < 0) {
        /* cut where it is too long */
        (void)snprintf(reason, reason_size, "cannot prepare the task's cgroup: %s: %s", what,
                       strerror(errno));
        return -1;
    }
    return 0;
}

bool cgroups_is_alone(const struct cgroups *cgroups, const struct hierarchy *hierarchy,
                      const pid_t *own, size_t count)
{
    return hierarchy_is_alone(hierarchy->path, cgroups ? tasks_name : NULL, own, count);
}

void cgroups_free(struct cgroups *cgroups)
{
    if (!cgroups) {
        return;
    }
    int error = errno;
    if (cgroups->task_cgroup_count > 0 && control_write(cgroups->tasks, "cgroup.kill", "1") == 0) {
        (void)await_empty(cgroups->tasks); /* what does not end is left, and found at next start */
    }
    for (size_t i = 0; i < cgroups->task_cgroup_count; i++) {
        task_cgroup_free(cgroups->task_cgroups[i]);
    }
    free(cgroups->task_cgroups);
    if (cgroups->tasks >= 0) {
        close(cgroups->tasks);
        (void)unlinkat(cgroups->unit, tasks_name, AT_REMOVEDIR); /* unless somebody is in it */

        /* who comes after us could not be in the group while groups below have controllers */
        if (cgroups->controllers) {
            set_controllers(cgroups->unit, '-');
        }
    }
    if (cgroups->unit >= 0) {
        close(cgroups->unit);
    }
    free(cgroups);
    errno = error;
}
