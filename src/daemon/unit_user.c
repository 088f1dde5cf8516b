/* Finds the user of a queue's unit, so that leatd -t run as root checks files as that user. */
#include "daemon/unit_user.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log/log.h"
#include "config/file/source.h"
#include "exec/start/identity.h"

#define DEFAULT_USER "leat"

/* What systemd says about the unit. */
struct unit {
    char name[256];
    char user[128], group[128];
    char state[64]; /* LoadState; "" without systemd */
};

static void take_line(struct unit *unit, const char *line)
{
    const struct {
        const char *name;
        char *value;
        size_t size;
    } wanted[] = {{"User=", unit->user, sizeof unit->user},
                  {"Group=", unit->group, sizeof unit->group},
                  {"LoadState=", unit->state, sizeof unit->state}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        size_t length = strlen(wanted[i].name);
        if (strncmp(line, wanted[i].name, length) == 0) {
            (void)snprintf(wanted[i].value, wanted[i].size, "%.*s",
                           (int)strcspn(line + length, "\n"), line + length);
        }
    }
}

/* Starts systemctl with its output in *fd. Returns its process id, or -1. */
static pid_t start_systemctl(const struct unit *unit, int *fd)
{
    char *const argv[] = {
        "systemctl", "show", "--property=LoadState,User,Group", "--", (char *)(uintptr_t)unit->name,
        NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC)) {
        return -1;
    }
    if (posix_spawn_file_actions_init(&actions) == 0) {
        if (posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) ||
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) ||
            posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ)) {
            pid = -1;
        }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)close(ends[1]);
    *fd = ends[0];
    if (pid < 0) {
        (void)close(ends[0]);
    }
    return pid;
}

/* Asks systemd. Without systemd, nothing is set. */
static void ask_systemd(struct unit *unit)
{
    int fd, status;
    pid_t pid = start_systemctl(unit, &fd);
    if (pid < 0) {
        return;
    }
    FILE *file = fdopen(fd, "r");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        take_line(unit, line);
    }
    if (file) {
        (void)fclose(file); /* nothing was written, so closing cannot fail */
    } else {
        (void)close(fd);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
}

int unit_user_become(const char *path, char *name, size_t size)
{
    struct unit unit = {0};
    *name = '\0';
    if (geteuid() != 0 || config_source_unit(path, unit.name, sizeof unit.name)) {
        return 0;
    }
    ask_systemd(&unit);
    bool is_known = strcmp(unit.state, "loaded") == 0;
    if (is_known && !*unit.user) {
        return 0;
    }
    const struct config_task task = {.user = is_known ? unit.user : DEFAULT_USER,
                                     .group = is_known && *unit.group ? unit.group : NULL};
    struct identity *identity = identity_new(&task);
    int result = -1;
    if (!identity) {
        log_text(LOG_ERR, "%s: out of memory", path);
    } else if (*identity->missing && is_known) {
        log_text(LOG_ERR, "%s: cannot check as the user of %s: %s", path, unit.name,
                 identity->missing);
    } else if (*identity->missing) {
        result = 0;
    } else if (identity_become(identity)) {
        log_text(LOG_ERR, "%s: cannot check as user %s: %s", path, task.user, strerror(errno));
    } else {
        (void)snprintf(name, size, "%s", task.user);
        result = 0;
    }
    identity_free(identity);
    return result;
}
