/*
 * Reads where cgroup v2 is mounted and which cgroup this process is in, and walks cgroups below it.
 */
#include "exec/cgroup/hierarchy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/process/descriptor.h"

enum {
    MOST_BELOW = 32,     /* how deep cgroups are searched for processes */
    CLEAR_STEPS = 100000 /* after so many steps, hierarchy_clear gives up */
};

/* The inode of the initial cgroup namespace. */
#define INITIAL_NAMESPACE 0xeffffffbU

/* ---- finding ---- */

/* Returns the whole file as a text that the caller frees, or NULL. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    if (file && getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    if (file) {
        (void)fclose(file); /* it was only read */
    }
    return text;
}

/* Decodes \ooo, by which mountinfo writes spaces and the like. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (*at == '\\' && strspn(at + 1, "01234567") >= 3) {
            *to++ = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* Reads "ID PARENT DEVICE ROOT POINT OPTIONS [TAGS …] - TYPE …". Returns true for cgroup2, and sets
 * ROOT and POINT. */
static bool read_mount(char *line, char **root, char **point)
{
    char *rest = NULL;
    char *word = strtok_r(line, " ", &rest);
    for (int i = 0; word && i < 5; i++) {
        *root = i == 3 ? word : *root;
        *point = i == 4 ? word : *point;
        word = strtok_r(NULL, " ", &rest);
    }
    while (word && strcmp(word, "-") != 0) {
        word = strtok_r(NULL, " ", &rest);
    }
    const char *type = word ? strtok_r(NULL, " ", &rest) : NULL;
    if (!type || strcmp(type, "cgroup2") != 0) {
        return false;
    }
    unescape(*root);
    unescape(*point);
    return true;
}

/* Finds the cgroup's path in the text of /proc/self/cgroup. Returns its size; 0: there is none. */
static size_t own_group(const char *groups, const char **group)
{
    for (const char *line = groups; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "0::/", 4) == 0) {
            *group = line + 3;
            return strcspn(*group, "\n");
        }
    }
    return 0;
}

/* Sets path to POINT and the part of the cgroup's path below ROOT. */
static void join(const char *root, const char *point, const char *group, size_t size, char *path)
{
    size_t skip = strcmp(root, "/") == 0 ? 0 : strlen(root);
    path[0] = '\0';
    if (skip > size || strncmp(group, root, skip) != 0 ||
        (skip > 0 && skip < size && group[skip] != '/')) {
        return; /* another part of the hierarchy is mounted */
    }
    group += skip;
    size -= skip;
    size = size == 1 ? 0 : size; /* the path is "/" */
    size_t before = strlen(point);
    if (before + size < PATH_MAX) {
        memcpy(path, point, before);
        memcpy(path + before, group, size);
        path[before + size] = '\0';
    }
}

size_t hierarchy_locate(char *mounts, const char *groups, char *path, char *inside)
{
    const char *group = NULL;
    size_t size = own_group(groups, &group);
    path[0] = inside[0] = '\0';

    /* "/.." is a cgroup outside of the own namespace; " (deleted)" one that was removed */
    if (size == 0 || size >= PATH_MAX || strncmp(group, "/..", 3) == 0 ||
        (size > 10 && strncmp(group + size - 10, " (deleted)", 10) == 0)) {
        return 0;
    }
    char *rest = NULL;
    for (char *line = strtok_r(mounts, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *root = NULL, *point = NULL;
        if (read_mount(line, &root, &point)) {
            join(root, point, group, size, path);
            if (path[0] != '\0') {
                memcpy(inside, group, size);
                inside[size] = '\0';
                return strlen(point);
            }
        }
    }
    return 0;
}

/* Names the cgroup uniquely since boot. In a cgroup namespace of its own the path is not enough,
 * since two containers can have the same; the inode of the root is added, which the kernel never
 * reuses. */
static void name_group(struct hierarchy *hierarchy, const char *inside, size_t mount_size)
{
    struct stat space, root;
    char mount[PATH_MAX];
    (void)snprintf(hierarchy->name, sizeof hierarchy->name, "%s", inside);
    if (stat("/proc/self/ns/cgroup", &space) == 0 && space.st_ino == INITIAL_NAMESPACE) {
        return;
    }
    memcpy(mount, hierarchy->path, mount_size);
    mount[mount_size] = '\0';
    if (stat(mount, &root) == 0) {
        (void)snprintf(hierarchy->name, sizeof hierarchy->name, "%s#%" PRIuMAX, inside,
                       (uintmax_t)root.st_ino);
    } else {
        (void)snprintf(hierarchy->name, sizeof hierarchy->name, "-");
    }
}

void hierarchy_find(struct hierarchy *hierarchy)
{
    char *mounts = read_text("/proc/self/mountinfo"), *groups = read_text("/proc/self/cgroup");
    char inside[PATH_MAX] = "";
    hierarchy->path[0] = '\0';
    (void)snprintf(hierarchy->name, sizeof hierarchy->name, "-");
    size_t mount_size =
        mounts && groups ? hierarchy_locate(mounts, groups, hierarchy->path, inside) : 0;
    if (inside[0] != '\0') {
        name_group(hierarchy, inside, mount_size);
    }
    free(mounts);
    free(groups);
}

/* Cuts "/NAME" out of the path, before `end`, which is NULL or a part of the path. */
static void cut_name(char *path, const char *end, const char *name)
{
    size_t size = strlen(name), before = end ? (size_t)(end - path) : 0;
    if (before > size && path[before - size - 1] == '/' &&
        strncmp(path + before - size, name, size) == 0) {
        memmove(path + before - size - 1, end, strlen(end) + 1);
    }
}

void hierarchy_leave(struct hierarchy *hierarchy, const char *name)
{
    cut_name(hierarchy->path, strchr(hierarchy->path, '\0'), name);
    cut_name(hierarchy->name, strchr(hierarchy->name, '\0'), name);
    cut_name(hierarchy->name, strrchr(hierarchy->name, '#'), name); /* see name_group */
}

bool hierarchy_is_delegated(const char *path)
{
    static const char *const attributes[] = {"user.delegate", "trusted.delegate"};
    struct stat status;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        char value = '\0';
        if (getxattr(path, attributes[i], &value, 1) == 1 && value == '1') {
            return true;
        }
    }
    return geteuid() != 0 && stat(path, &status) == 0 && status.st_uid == geteuid();
}

/* ---- cgroups below ---- */

/* Returns the next cgroup below, or NULL. */
static const struct dirent *next_below(DIR *stream)
{
    const struct dirent *entry;
    /* cppcheck-suppress readdirCalled ; the stream is nobody else's */
    while ((entry = readdir(stream))) {
        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0) {
            return entry;
        }
    }
    return NULL;
}

/* Opens a stream on the directory, whose descriptor stays the caller's. */
static DIR *open_stream(int directory)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream && fd >= 0) {
        close(fd);
    }
    return stream;
}

/* Returns true if all processes of one cgroup are among the named ones. */
static bool holds_only(int directory, const pid_t *own, size_t count)
{
    int fd = openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        descriptor_close(&fd);
        return false;
    }
    char line[32];
    bool alone = true;
    while (alone && fgets(line, sizeof line, file)) {
        long pid = strtol(line, NULL, 10);
        alone = false; /* pid 0 is a process that this namespace cannot see */
        for (size_t i = 0; i < count; i++) {
            alone = alone || (pid > 0 && pid == own[i]);
        }
    }
    alone = alone && !ferror(file);
    (void)fclose(file); /* it was only read */
    return alone;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded */
static bool is_alone(int directory, const char *except, const pid_t *own, size_t count, int depth)
{
    if (depth > MOST_BELOW || !holds_only(directory, own, count)) {
        return false;
    }
    DIR *stream = open_stream(directory);
    bool alone = stream;
    const struct dirent *entry;
    while (alone && (entry = next_below(stream))) {
        if (except && strcmp(entry->d_name, except) == 0) {
            continue;
        }
        int below = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (below < 0) {
            alone = errno == ENOENT;
            continue;
        }
        alone = is_alone(below, NULL, own, count, depth + 1);
        close(below);
    }
    if (stream) {
        closedir(stream);
    }
    return alone;
}

bool hierarchy_is_alone(const char *path, const char *except, const pid_t *own, size_t count)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return errno == ENOENT && path[0] != '\0';
    }
    bool alone = is_alone(directory, except, own, count, 0);
    close(directory);
    return alone;
}

/* Sets name to any cgroup directly below this one, or to "" if there is none. Returns 0, or -1
 * with errno. */
static int find_below(int directory, char name[NAME_MAX + 1])
{
    DIR *stream = open_stream(directory);
    if (!stream) {
        return -1;
    }
    const struct dirent *entry = next_below(stream);
    (void)snprintf(name, NAME_MAX + 1, "%s", entry ? entry->d_name : "");
    closedir(stream);
    return 0;
}

/* Removes one cgroup below *at, or goes down into it, or goes up if none is left. Closes *at and
 * sets it to the next cgroup. Returns 1 if there is more to do, 0 at the end, or -1 with errno. */
static int clear_step(int *at, size_t *depth, bool *risen)
{
    char name[NAME_MAX + 1];
    if (find_below(*at, name)) {
        return -1;
    }
    bool emptied = name[0] == '\0';
    if (emptied && *depth == 0) {
        return 0;
    }
    if (!emptied && (unlinkat(*at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)) {
        *risen = false;
        return 1;
    }
    if (!emptied && *risen) {
        return -1; /* it has no cgroups below, so a process is in it */
    }
    int next = openat(*at, emptied ? ".." : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (next < 0) {
        return -1;
    }
    *depth = emptied ? *depth - 1 : *depth + 1;
    *risen = emptied;
    close(*at);
    *at = next;
    return 1;
}

int hierarchy_clear(int directory)
{
    int at = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t depth = 0;
    bool risen = false;
    int more = at < 0 ? -1 : 1;
    for (int steps = 0; more > 0 && steps < CLEAR_STEPS; steps++) {
        more = clear_step(&at, &depth, &risen);
    }
    /* too many steps: other processes create cgroups as fast as this removes them */
    errno = more > 0 ? EBUSY : errno;
    descriptor_close(&at);
    return more == 0 ? 0 : -1;
}
