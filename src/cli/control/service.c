/*
 * Makes the user and the files of a queue's service, and moves a running service to its user.
 */
#include "cli/control/service.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/descriptor.h"
#include "base/process/program.h"
#include "base/process/systemd_unit.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "config/file/service.h"

/* The name sorts before those of other drop-ins, which can thereby replace each setting. */
#define DROP_IN "00-user.conf"

enum { COMMENT_SIZE = 128 };

struct service {
    const struct service_options *options;
    char own[SERVICE_NAME_SIZE]; /* the queue's own user */
    const char *name;            /* the user that it gets: own, or leat */
    char unit[160], drop_in[256], sysusers[96], logrotate[160];
    char *config;    /* path; owned */
    bool must_stop;  /* it runs as another user */
    bool is_stopped; /* for that reason */
};

/* ---- texts */

/* Writes the comment of the queue's user, by which it is known again. */
static void write_comment(const struct service *service, char comment[COMMENT_SIZE])
{
    (void)snprintf(comment, COMMENT_SIZE, "leat queue %s", service->options->queue);
    for (char *at = comment; *at; at++) {
        *at = *at == ':' ? '/' : *at; /* no field of passwd has a colon, and no queue a slash */
    }
}

static int add_sysusers(const struct service *service, struct buffer *text)
{
    char comment[COMMENT_SIZE];

    write_comment(service, comment);
    return buffer_printf(text,
                         "# The user of the queue %s, made by leat init --service. Members of the "
                         "group leat can use what all\n"
                         "# queues share.\n"
                         "u %s - \"%s\" /var/lib/%s\n"
                         "m %s " SERVICE_SHARED "\n",
                         service->options->queue, service->own, comment, service->own,
                         service->own);
}

static int add_drop_in(const struct service *service, struct buffer *text)
{
    const char *name = service->name;

    return buffer_printf(text,
                         "# Written by leat init --service%s. To change the user: leat init "
                         "--service %s --move%s\n"
                         "[Service]\n"
                         "User=%s\n"
                         "Group=%s\n"
                         "# an empty value removes the folders of the unit file, and also resets "
                         "their modes\n"
                         "StateDirectory=\n"
                         "StateDirectory=%s\n"
                         "StateDirectoryMode=0750\n"
                         "RuntimeDirectory=\n"
                         "RuntimeDirectory=%s\n"
                         "LogsDirectory=\n"
                         "LogsDirectory=%s\n"
                         "LogsDirectoryMode=0750\n",
                         service->options->shared ? " --shared" : "", service->options->queue,
                         service->options->shared ? "" : " --shared", name, name, name, name, name);
}

static int add_logrotate(const struct service *service, struct buffer *text)
{
    return buffer_printf(text,
                         "# Output of tasks in files ([output] to = file), as " LEAT_SYSCONFDIR
                         "/logrotate.d/leat does for other queues.\n"
                         "/var/log/%s/*/*.log {\n"
                         "    su %s %s\n"
                         "    daily\n"
                         "    minage 30\n"
                         "    rotate 0\n"
                         "    missingok\n"
                         "    nocreate\n"
                         "}\n",
                         service->own, service->own, service->own);
}

static int add_config(const struct service *service, struct buffer *text)
{
    return buffer_printf(text,
                         "; Worker of the queue %s on this host. leat.ini(5) describes all keys. "
                         "Check changes: leatd -t -q %s\n"
                         "[queue]\n"
                         "name = %s\n"
                         "\n"
                         "; If this file contains a password, run: chgrp %s %s && chmod 640 %s\n"
                         "[redis]\n"
                         ";host = localhost\n",
                         service->options->queue, service->options->queue, service->options->queue,
                         service->name, service->config, service->config);
}

/* ---- files */

static int fail_file(const char *path, const char *what)
{
    cli_error("%s: cannot %s: %s", path, what, strerror(errno));
    return EX_CANTCREAT;
}

/* Returns true if the file has exactly this text. */
static bool has_text(const char *path, const struct buffer *text)
{
    char *old = malloc(text->size + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool same = old && fd >= 0 && descriptor_read(fd, old, text->size + 1) == (ssize_t)text->size &&
                memcmp(old, text->data, text->size) == 0;

    if (fd >= 0) {
        (void)close(fd); /* it was only read */
    }
    free(old);
    return same;
}

/* Creates the file's folder, below a folder that exists. */
static int make_folder(const char *path)
{
    char *folder = strdup(path);
    int result = -1;

    if (folder) {
        *strrchr(folder, '/') = '\0';
        result = mkdir(folder, 0755) != 0 && errno != EEXIST ? -1 : 0;
        free(folder);
    }
    return result;
}

static int write_text(const char *path, const struct buffer *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int error;

    if (fd < 0) {
        return -1;
    }
    errno = ENOSPC; /* for a write that is cut short */
    if (write(fd, text->data, text->size) != (ssize_t)text->size || fchmod(fd, 0644) != 0 ||
        fsync(fd) != 0) {
        error = errno;
        (void)close(fd); /* the file is incomplete anyway */
        (void)unlink(path);
        errno = error;
        return -1;
    }
    return close(fd);
}

/* Replaces the file as a whole, unless it has this text. */
static int replace_file(const char *path, const struct buffer *text)
{
    char making[320];

    if (text->failed) {
        return cli_no_memory();
    }
    if (has_text(path, text)) {
        return EX_OK;
    }
    (void)snprintf(making, sizeof making, "%s.new", path);
    (void)unlink(making); /* what an interrupted command has left */
    if (make_folder(path) != 0 || write_text(making, text) != 0) {
        return fail_file(making, "write");
    }
    if (rename(making, path) != 0) {
        return fail_file(path, "write");
    }
    return EX_OK;
}

/* Writes a file with the text of that function. */
static int make_file(const struct service *service, const char *path,
                     int (*add)(const struct service *service, struct buffer *text))
{
    struct buffer text = BUFFER_INIT;
    int status;

    (void)add(service, &text); /* a failure sets text.failed */
    status = replace_file(path, &text);
    buffer_free(&text);
    return status;
}

static int make_config(const struct service *service)
{
    struct stat status;

    if (lstat(service->config, &status) == 0) {
        return EX_OK;
    }
    return errno == ENOENT ? make_file(service, service->config, add_config)
                           : fail_file(service->config, "look at it");
}

/* ---- the user */

/* Returns a user that is in the group, or NULL. */
static const char *find_member(const struct group *group)
{
    const struct passwd *entry;

    if (group->gr_mem[0]) {
        return group->gr_mem[0];
    }
    setpwent();
    while ((entry = getpwent()) && entry->pw_gid != group->gr_gid) {
    }
    endpwent();
    return entry ? entry->pw_name : NULL;
}

/* Refuses to take a group over: its members could read the files of the queue. One without members
 * is what an interrupted command leaves. */
static int check_group(const struct service *service)
{
    const struct group *group = getgrnam(service->own);
    const char *member = group ? find_member(group) : NULL;

    if (!member) {
        return EX_OK;
    }
    cli_error("group %s exists and has members, such as %s, who could read the files of the queue; "
              "remove it, or give the queue another name",
              service->own, member);
    return EX_CANTCREAT;
}

/* Refuses a user that was made for something else, also for another queue: names that are mapped
 * can be the same. */
static int check_user(const struct service *service)
{
    struct passwd *entry = getpwnam(service->own);
    char home[64], comment[COMMENT_SIZE];

    if (!entry) {
        return check_group(service);
    }
    (void)snprintf(home, sizeof home, "/var/lib/%s", service->own);
    write_comment(service, comment);
    if (strcmp(entry->pw_dir, home) == 0 && entry->pw_uid != 0 &&
        strcmp(entry->pw_gecos, comment) == 0) {
        return EX_OK;
    }
    cli_error("user %s exists and was not made for this queue: its comment is '%s', its home %s; "
              "remove it, or give the queue another name",
              service->own, entry->pw_gecos, entry->pw_dir);
    return EX_CANTCREAT;
}

static int run_sysusers(const struct service *service)
{
    char *const argv[] = {"systemd-sysusers", (char *)(uintptr_t)service->sysusers, NULL};
    char said[512];

    if (program_run(argv, said, sizeof said) == 0 && getpwnam(service->own)) {
        return EX_OK;
    }
    said[strcspn(said, "\n")] = '\0';
    cli_error("cannot create the user %s: systemd-sysusers %s failed%s%s", service->own,
              service->sysusers, *said ? ": " : "", said);
    return EX_OSERR;
}

static int make_user(const struct service *service)
{
    int status = check_user(service);

    status = status == EX_OK ? make_file(service, service->sysusers, add_sysusers) : status;
    return status == EX_OK ? run_sysusers(service) : status;
}

/* ---- the unit */

static int run_systemctl(const struct service *service, const char *verb, bool with_unit)
{
    char *const argv[] = {"systemctl", (char *)(uintptr_t)verb,
                          with_unit ? (char *)(uintptr_t)service->unit : NULL, NULL};

    if (program_run(argv, NULL, 0) == 0) {
        return EX_OK;
    }
    cli_error("systemctl %s%s%s failed", verb, with_unit ? " " : "",
              with_unit ? service->unit : "");
    return EX_OSERR;
}

static int show_unit(const struct service *service, struct systemd_unit *unit)
{
    if (systemd_unit_show(service->unit, unit) != 0) {
        cli_error("cannot ask systemd about %s: leat init --service needs a running systemd",
                  service->unit);
        return EX_UNAVAILABLE;
    }
    if (strcmp(unit->load, "loaded") != 0) {
        cli_error("%s: systemd does not know this unit: %s; install leat first", service->unit,
                  unit->load);
        return EX_UNAVAILABLE;
    }
    return EX_OK;
}

/* Finds out whether a worker has to be stopped, and refuses to do that without --move. */
static int check_unit(struct service *service)
{
    struct systemd_unit unit;
    int status = show_unit(service, &unit);
    bool runs = strcmp(unit.active, "inactive") != 0 && strcmp(unit.active, "failed") != 0;

    if (status != EX_OK) {
        return status;
    }
    service->must_stop = runs && strcmp(unit.state_directory, service->name) != 0;
    if (service->must_stop && !service->options->move) {
        cli_error("%s is running as user %s: add --move to stop it, which lets running tasks "
                  "finish as at any stop, and to start it as user %s",
                  service->unit, unit.user, service->name);
        return EX_TEMPFAIL;
    }
    return EX_OK;
}

/* Writes the drop-in, has systemd read it, and checks that the unit has the user then. */
static int set_user(const struct service *service)
{
    struct systemd_unit unit;
    int status = make_file(service, service->drop_in, add_drop_in);

    status = status == EX_OK ? run_systemctl(service, "daemon-reload", false) : status;
    status = status == EX_OK ? show_unit(service, &unit) : status;
    if (status == EX_OK && !service->options->shared && strcmp(unit.user, service->name) != 0) {
        cli_error("%s has the user %s: another drop-in sets it; see systemctl cat %s",
                  service->unit, unit.user, service->unit);
        return EX_CONFIG;
    }
    return status;
}

/* Gives a configuration that the group of one user can read to the group of the other. */
static void give_config(const struct service *service, const char *from, const char *to)
{
    struct group *entry = getgrnam(from);
    gid_t group = entry ? entry->gr_gid : (gid_t)-1;
    struct stat status;

    entry = getgrnam(to);
    if (entry && lstat(service->config, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_gid == group && status.st_uid == 0 &&
        lchown(service->config, (uid_t)-1, entry->gr_gid) != 0) {
        cli_error("%s: cannot change its group to %s: %s", service->config, to, strerror(errno));
    }
}

/* Lets the worker run as the user leat again. */
static void go_back(const struct service *service)
{
    const struct service_options options = {service->options->queue, true, true};
    struct service before = *service;

    before.options = &options;
    before.name = SERVICE_SHARED;
    give_config(service, service->own, before.name);
    if (set_user(&before) == EX_OK && run_systemctl(&before, "start", true) == EX_OK) {
        cli_error("%s cannot run as user %s: see journalctl -u %s; it runs as user %s again",
                  service->unit, service->name, service->unit, before.name);
    }
}

/* Gives the unit its user, and starts it if it was stopped for that. */
static int change_user(struct service *service)
{
    bool shared = service->options->shared;
    int status = service->must_stop ? run_systemctl(service, "stop", true) : EX_OK;

    service->is_stopped = service->must_stop && status == EX_OK;
    status = status == EX_OK ? set_user(service) : status;
    if (!service->is_stopped) {
        return status;
    }
    if (status == EX_OK) {
        give_config(service, shared ? service->own : SERVICE_SHARED, service->name);
        status = run_systemctl(service, "start", true);
    }
    if (status != EX_OK && !shared) {
        go_back(service);
    }
    return status;
}

/* ---- all of it */

static int name_all(struct service *service)
{
    const char *queue = service->options->queue;

    service_name(queue, service->own);
    service->name = service->options->shared ? SERVICE_SHARED : service->own;
    (void)snprintf(service->unit, sizeof service->unit, "leatd@%s.service", queue);
    (void)snprintf(service->drop_in, sizeof service->drop_in,
                   "/etc/systemd/system/leatd@%s.service.d/" DROP_IN, queue);
    (void)snprintf(service->sysusers, sizeof service->sysusers, "/etc/sysusers.d/%s.conf",
                   service->own);
    (void)snprintf(service->logrotate, sizeof service->logrotate, LEAT_SYSCONFDIR "/logrotate.d/%s",
                   service->own);
    service->config = config_source_queue_path(queue);
    return service->config ? EX_OK : cli_no_memory();
}

static int make_all(struct service *service)
{
    int status = check_unit(service);

    if (!service->options->shared) {
        status = status == EX_OK ? make_user(service) : status;
        status = status == EX_OK ? make_file(service, service->logrotate, add_logrotate) : status;
    }
    status = status == EX_OK ? make_config(service) : status;
    return status == EX_OK ? change_user(service) : status;
}

int service_make(const struct service_options *options)
{
    struct service service = {.options = options};
    int status;

    if (!service_is_queue(options->queue)) {
        cli_error("--service: '%s' is not the name of a queue; use 1 to 100 of the characters A-Z "
                  "a-z 0-9 _ . : @ -",
                  options->queue);
        return EX_USAGE;
    }
    if (geteuid() != 0) {
        cli_error("leat init --service: only root can make users and units; run it as root");
        return EX_NOPERM;
    }
    status = name_all(&service);
    status = status == EX_OK ? make_all(&service) : status;
    if (status == EX_OK) {
        status = output_printf(
            "%s runs as user %s with %s%s%s\n", options->queue, service.name, service.config,
            service.is_stopped ? "" : "; start it: systemctl enable --now leatd@",
            service.is_stopped ? "" : options->queue);
    }
    free(service.config);
    return status;
}
