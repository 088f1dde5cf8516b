/*
 * Recognizes records of leatd by what journald says about their sender.
 */
#include "cli/logs/logs_sender.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/process/systemd_unit.h"
#include "config/file/source.h"

struct logs_sender {
    char beside[PATH_MAX]; /* leatd in the folder of leat; "": unknown */
    char sbin[PATH_MAX];   /* leatd in the folder sbin beside that; "": none */
    char unit[256];        /* of the queue; "": unknown, so any unit that root has configured */
    char user[16];         /* this user; "": the journal is of another host */
    char tasks[128];       /* the user of tasks, if it is known to be another than the unit's */
};

/* The journal has the path of a program as the kernel sees it, without symbolic links. */
static void find_programs(struct logs_sender *sender)
{
    char own[PATH_MAX - sizeof "/sbin/leatd"];
    ssize_t size = readlink("/proc/self/exe", own, sizeof own - 1);
    char *last;

    if (size <= 0) {
        return;
    }
    own[size] = '\0';
    last = strrchr(own, '/');
    if (last) {
        *last = '\0';
        (void)snprintf(sender->beside, sizeof sender->beside, "%s/leatd", own);
        last = strrchr(own, '/');
    }
    if (last) {
        *last = '\0';
        (void)snprintf(sender->sbin, sizeof sender->sbin, "%s/sbin/leatd", own);
    }
}

/* Writes the uid of a user that is given by name or number. */
static void write_uid(const char *name, char *text, size_t size)
{
    const struct passwd *entry = getpwnam(name);

    if (entry) {
        (void)snprintf(text, size, "%lu", (unsigned long)entry->pw_uid);
    } else {
        (void)snprintf(text, size, "%s", name);
    }
}

/* With [task] user, tasks and leatd normally have different users. */
static void find_tasks(struct logs_sender *sender, const char *user)
{
    char own[sizeof sender->tasks];
    struct systemd_unit unit;

    if (!*sender->unit || systemd_unit_show(sender->unit, &unit) != 0 ||
        strcmp(unit.load, "loaded") != 0) {
        return;
    }
    write_uid(user, sender->tasks, sizeof sender->tasks);
    write_uid(*unit.user ? unit.user : "root", own, sizeof own);
    if (strcmp(own, sender->tasks) == 0) {
        sender->tasks[0] = '\0';
    }
}

struct logs_sender *logs_sender_new(const struct config *config, bool is_here)
{
    struct logs_sender *sender = calloc(1, sizeof *sender);

    if (sender) {
        find_programs(sender);
        if (config_source_unit(config->path, sender->unit, sizeof sender->unit) != 0) {
            sender->unit[0] = '\0';
        }
        if (is_here) {
            (void)snprintf(sender->user, sizeof sender->user, "%lu", (unsigned long)geteuid());
        }
        if (is_here && config->task.user) {
            find_tasks(sender, config->task.user);
        }
    }
    return sender;
}

void logs_sender_free(struct logs_sender *sender)
{
    free(sender);
}

/* Returns true if the field is there and has this value, which is not "". */
static bool has(sd_journal *handle, const char *field, const char *value)
{
    const void *data;
    size_t size, name = strlen(field) + 1;

    return *value != '\0' && sd_journal_get_data(handle, field, &data, &size) >= 0 && size > name &&
           bytes_equal((struct bytes){(const char *)data + name, size - name}, value);
}

/* Returns true if the program is the one at this path, or the one at this path below another root
 * directory, which journald sees from outside. */
static bool is_at(sd_journal *handle, const char *path)
{
    static const char field[] = "_EXE=";
    const void *data;
    size_t size, length = strlen(path);

    return length > 0 && sd_journal_get_data(handle, "_EXE", &data, &size) >= 0 &&
           size >= strlen(field) + length &&
           memcmp((const char *)data + size - length, path, length) == 0;
}

/* Returns true for a service that root has configured. Services of users are below user@UID. */
static bool is_of_service(sd_journal *handle)
{
    static const char field[] = "_SYSTEMD_UNIT=", ending[] = ".service", users[] = "user@";
    const void *data;
    size_t size;

    if (sd_journal_get_data(handle, "_SYSTEMD_UNIT", &data, &size) < 0 ||
        size < sizeof field + sizeof ending) {
        return false;
    }
    return memcmp((const char *)data + size - strlen(ending), ending, strlen(ending)) == 0 &&
           memcmp((const char *)data + strlen(field), users, strlen(users)) != 0;
}

/* Returns true if a folder above the cgroup is that of tasks: "tasks" or, after an upgrade in
 * place, "tasks." and a number. */
static bool is_below_tasks(struct bytes cgroup)
{
    static const char tasks[] = "/tasks";
    const char *at = cgroup.data, *end = at + cgroup.size;

    while ((at = memmem(at, (size_t)(end - at), tasks, strlen(tasks)))) {
        at += strlen(tasks);
        if (at < end && *at == '.') {
            at++;
            while (at < end && *at >= '0' && *at <= '9') {
                at++;
            }
        }
        if (at < end && *at == '/') {
            return true;
        }
    }
    return false;
}

/* A task may execute leatd, and other programs in the name of leatd. It is in a cgroup below that
 * of the tasks, unless it runs as leatd's user and has moved itself. */
static bool is_of_task(const struct logs_sender *sender, sd_journal *handle)
{
    const void *data;
    size_t size;

    if (has(handle, "_UID", sender->tasks) && has(handle, "_SYSTEMD_UNIT", sender->unit)) {
        return true;
    }
    return sd_journal_get_data(handle, "_SYSTEMD_CGROUP", &data, &size) >= 0 &&
           is_below_tasks((struct bytes){data, size});
}

bool logs_sender_is_leatd(const struct logs_sender *sender, sd_journal *handle)
{
    bool is_program = is_at(handle, sender->beside) || is_at(handle, sender->sbin);
    bool is_allowed =
        has(handle, "_UID", "0") || has(handle, "_UID", sender->user) ||
        (*sender->unit ? has(handle, "_SYSTEMD_UNIT", sender->unit) : is_of_service(handle));

    return is_program && is_allowed && !is_of_task(sender, handle);
}
