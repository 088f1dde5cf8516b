/*
 * Creates, prepares and removes the cgroups of a worker.
 */
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
#include "base/join.h"
#include "base/process/control_file.h"
#include "base/process/descriptor.h"
#include "queue/task_bounds.h"

enum {
    LEFTOVERS_MS = 20000, /* how long the kernel may take to end killed processes */
    LOCK_MS = 1000,       /* how long to wait for another worker's lock */
    LOCK_PAUSE_MS = 5,    /* between attempts to lock */
    FOLDERS = 8,          /* of tasks: how many daemons of a service can run side by side */
    NAME_SIZE = 16,
    CONTROLLERS = 4,
};

static const mode_t folder_mode = 0711; /* of a folder for tasks */

static const enum bounds_controller controllers[CONTROLLERS] = {BOUNDS_CPU, BOUNDS_IO,
                                                                BOUNDS_MEMORY, BOUNDS_PIDS};

struct cgroups {
    int unit, tasks;      /* directories: the service's own cgroup, and the one above all tasks */
    char name[NAME_SIZE]; /* of the latter */
    unsigned controllers;
    struct task_cgroup **task_cgroups; /* by slot index; owned; NULL: not created yet */
    size_t task_cgroup_count;
};

/* ---- the tree ---- */

/* Opens the cgroup below, and creates it with that mode if it is missing. Returns its directory, or
 * -1 with errno. */
static int open_below(int directory, const char *name, mode_t mode)
{
    if (mkdirat(directory, name, mode) < 0 && errno != EEXIST) {
        return -1;
    }
    return openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Moves this process into the cgroup `daemon`. If such a cgroup exists, it is removed and created
 * again: if it was ever killed, newer kernels kill each process that one in it starts with clone3
 * (see task_cgroup_kill). It cannot be removed while guards of a former daemon are in it; but if
 * they live, it was not killed. */
static int move_to_leaf(int unit)
{
    (void)unlinkat(unit, CGROUPS_DAEMON, AT_REMOVEDIR);
    int leaf = open_below(unit, CGROUPS_DAEMON, 0755);
    if (leaf < 0) {
        return -1;
    }
    int result = control_file_write(leaf, "cgroup.procs", "0");
    descriptor_close(&leaf);
    return result;
}

/* Enables ('+') or disables ('-') the controllers for the cgroups below, one at a time, since each
 * is optional. */
static void set_controllers(int directory, char sign)
{
    char text[32];
    for (size_t i = 0; i < CONTROLLERS; i++) {
        (void)snprintf(text, sizeof text, "%c%s", sign, bounds_controller_name(controllers[i]));
        (void)control_file_write(directory, "cgroup.subtree_control",
                                 text); /* enable() reads it back */
    }
}

/* Enables the controllers for the cgroups below. Returns those that they have then. */
static unsigned enable(int directory)
{
    char text[256];
    set_controllers(directory, '+');
    unsigned enabled = 0;
    if (control_file_read_at(directory, "cgroup.subtree_control", text, sizeof text) > 0) {
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

/* Waits until no process is in the cgroup. Returns 0, or -1 with errno. */
static int await_empty(int directory)
{
    int events = openat(directory, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (events < 0) {
        return -1;
    }
    int64_t until_ns = clock_boot_ns() + LEFTOVERS_MS * CLOCK_NS_PER_MS;
    char text[128];
    int result = 0;
    while (result == 0 && control_file_read(events, text, sizeof text) > 0 &&
           control_file_value(text, "populated") != 0) {
        int64_t left_ms = (until_ns - clock_boot_ns()) / CLOCK_NS_PER_MS;
        struct pollfd change = {.fd = events, .events = POLLPRI};
        if (left_ms <= 0) {
            errno = EBUSY;
            result = -1;
        } else if (poll(&change, 1, (int)left_ms) < 0 && errno != EINTR) {
            result = -1;
        }
    }
    descriptor_close(&events);
    return result;
}

/* Locks the directory, with some patience: a worker that was just killed may have left a child that
 * holds the lock until it executes its program or a guard kills it. Returns 0, or -1 with errno. */
static int lock(int directory, int64_t patience_ms)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * CLOCK_NS_PER_MS};
    int64_t until_ns = clock_boot_ns() + patience_ms * CLOCK_NS_PER_MS;
    while (flock(directory, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK || clock_boot_ns() >= until_ns) {
            return -1;
        }
        (void)nanosleep(&pause, NULL); /* a signal may cut it short */
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

/* Returns the cgroup with that index, created if needed; or NULL with errno. */
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

/* Opens a folder for tasks. Only this user may do that: whoever can open it can lock it, and so
 * keep daemons from using it. Others can still reach the cgroups in it. */
static int open_folder(int unit, const char *name)
{
    struct stat status;
    int directory = open_below(unit, name, folder_mode);
    if (directory >= 0 && fstat(directory, &status) == 0) {
        /* an earlier version may have made it; if this fails, it stays as it was */
        (void)fchmod(directory, status.st_mode & folder_mode);
    }
    return directory;
}

static void name_folder(char name[NAME_SIZE], int number)
{
    (void)snprintf(name, NAME_SIZE, number > 1 ? "tasks.%d" : "tasks", number); /* fits */
}

/* Opens and locks the first folder for tasks that no other daemon has. Returns its directory, or
 * -1 with errno; then *taken says whether it can be opened, but others have it. */
static int take_folder(struct cgroups *cgroups, bool beside, bool *taken)
{
    *taken = false;
    for (int number = 1; number <= (beside ? FOLDERS : 1); number++) {
        name_folder(cgroups->name, number);
        int directory = open_folder(cgroups->unit, cgroups->name);
        if (directory < 0 || lock(directory, beside ? 0 : LOCK_MS) == 0) {
            return directory;
        }
        descriptor_close(&directory);
    }
    *taken = errno == EWOULDBLOCK;
    return -1;
}

/* Kills and removes all that is in the folder. Returns 0, or -1 with errno. */
static int empty_folder(int directory)
{
    return control_file_write(directory, "cgroup.kill", "1") < 0 || await_empty(directory) < 0
               ? -1
               : hierarchy_clear(directory);
}

/* Empties the folders of daemons that are dead. */
static int empty_others(const struct cgroups *cgroups)
{
    char name[NAME_SIZE];
    int result = 0;
    for (int number = 1; number <= FOLDERS && result == 0; number++) {
        name_folder(name, number);
        int directory = openat(cgroups->unit, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        bool is_free =
            directory >= 0 && strcmp(name, cgroups->name) != 0 && lock(directory, 0) == 0;
        result = is_free ? empty_folder(directory) : 0;
        descriptor_close(&directory);
        if (is_free && result == 0) {
            (void)unlinkat(cgroups->unit, name, AT_REMOVEDIR); /* an empty one does no harm */
        }
    }
    return result;
}

/* Creates the cgroups. Returns NULL, or text for what could not be done, with errno. */
static const char *build(struct cgroups *cgroups, const char *path, bool beside)
{
    cgroups->unit = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroups->unit < 0) {
        return "cannot be opened";
    }
    bool taken;
    cgroups->tasks = take_folder(cgroups, beside, &taken);
    if (cgroups->tasks < 0) {
        return taken ? "another leatd runs tasks in it" : "cannot create cgroups in it";
    }
    if (faccessat(cgroups->tasks, "cgroup.kill", W_OK, AT_EACCESS) < 0) {
        return "cgroup.kill is missing; it needs Linux 5.14";
    }
    if (move_to_leaf(cgroups->unit) < 0) {
        return "leatd cannot move into a cgroup of its own there";
    }
    if (empty_folder(cgroups->tasks) < 0 || empty_others(cgroups) < 0) {
        return "processes of an earlier worker do not die";
    }
    cgroups->controllers = enable(cgroups->unit);
    cgroups->controllers = cgroups->controllers ? enable(cgroups->tasks) : 0;

    /* the first task cgroup shows whether any can be created */
    return task_cgroup_at(cgroups, 0) ? NULL : "cannot create cgroups for tasks in it";
}

/* ---- limits and controllers ---- */

/* The file io.weight is missing if the kernel has no cost model for disks (iocost). */
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
            join_word(text, size, ", ", task_bound_name(i));
        }
    }
}

void cgroups_controllers(const struct cgroups *cgroups, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < CONTROLLERS; i++) {
        if (cgroups->controllers & controllers[i]) {
            join_word(text, size, " ", bounds_controller_name(controllers[i]));
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

/* Without a working cgroup the worker starts nevertheless, unless the config requires one. */
static enum cgroups_state refuse(const struct config *config)
{
    return config->isolation.cgroup == CONFIG_CGROUP_REQUIRED ? CGROUPS_FAILED : CGROUPS_UNUSED;
}

enum cgroups_state cgroups_new(const struct config *config, const struct hierarchy *hierarchy,
                               bool beside, struct cgroups **cgroups, char *text, size_t size)
{
    *cgroups = NULL;
    text[0] = '\0';
    if (config->isolation.cgroup == CONFIG_CGROUP_OFF) {
        return CGROUPS_UNUSED;
    }
    if (hierarchy->path[0] == '\0') {
        (void)snprintf(text, size, "no cgroup v2 of this process is visible");
        return refuse(config);
    }
    if (config->isolation.cgroup == CONFIG_CGROUP_AUTO &&
        !hierarchy_is_delegated(hierarchy->path)) {
        return CGROUPS_UNUSED;
    }
    struct cgroups *made = new_cgroups();
    const char *problem = made ? build(made, hierarchy->path, beside) : "out of memory";
    if (problem) {
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
        (void)snprintf(reason, reason_size, "cannot prepare the task's cgroup: %s: %s", what,
                       strerror(errno));
        return -1;
    }
    return 0;
}

bool cgroups_is_alone(const struct cgroups *cgroups, const struct hierarchy *hierarchy,
                      const pid_t *own, size_t count)
{
    return hierarchy_is_alone(hierarchy->path, cgroups ? cgroups->name : NULL, own, count);
}

void cgroups_free(struct cgroups *cgroups)
{
    if (!cgroups) {
        return;
    }
    int error = errno;
    if (cgroups->task_cgroup_count > 0 &&
        control_file_write(cgroups->tasks, "cgroup.kill", "1") == 0) {
        (void)await_empty(cgroups->tasks); /* the next start kills what is left */
    }
    for (size_t i = 0; i < cgroups->task_cgroup_count; i++) {
        task_cgroup_free(cgroups->task_cgroups[i]);
    }
    free(cgroups->task_cgroups);
    if (cgroups->tasks >= 0) {
        close(cgroups->tasks);
        (void)unlinkat(cgroups->unit, cgroups->name, AT_REMOVEDIR); /* fails if it is in use */

        /* the next process of the service could not enter its cgroup while controllers are enabled
         * for cgroups below; this fails while another daemon of the service uses them */
        if (cgroups->controllers) {
            set_controllers(cgroups->unit, '-');
        }
    }
    descriptor_close(&cgroups->unit);
    free(cgroups);
    errno = error;
}
