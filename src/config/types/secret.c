/* Reads secrets from files and systemd credentials. */
#include "config/types/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/descriptor.h"

enum { SECRET_MAX = 4096 };

void secret_advise(struct buffer *text, const char *path)
{
    const struct group *entry = geteuid() != 0 ? getgrgid(getegid()) : NULL;
    const char *group = entry ? entry->gr_name : "GROUP";

    /* a failed append marks the buffer */
    (void)buffer_printf(text, "run: chgrp %s %s && chmod 640 %s%s", group, path, path,
                        entry ? "" : ", with the group of the queue's user");
}

/* Reports why the file is not private, with the command that changes it. The reader keeps its
 * access as the owner, or else by its group. Returns -1. */
static int refuse_access(const char *path, const struct stat *status, struct buffer *why)
{
    bool owns = status->st_uid == geteuid() && status->st_uid != 0;
    const char *fault = (status->st_mode & S_IRWXO) != 0 ? "is accessible to all users"
                                                         : "is writable by its group";

    /* a failure sets why->failed, which the caller checks */
    (void)buffer_printf(why, "%s %s; ", path, fault);
    if (owns) {
        (void)buffer_printf(why, "run: chmod g-w,o= %s", path);
    } else {
        secret_advise(why, path);
    }
    return -1;
}

/* Returns 0 if the file may be read, or -1 with the reason in why. */
static int check_file(int fd, const char *path, bool must_be_private, struct buffer *why)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        (void)buffer_printf(why, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        (void)buffer_printf(why, "%s: not a regular file", path);
    } else if (must_be_private && (status.st_mode & (S_IWGRP | S_IRWXO)) != 0) {
        return refuse_access(path, &status, why);
    } else {
        return 0;
    }
    return -1;
}

/* Why the text cannot be a secret, or NULL. One newline at its end is removed. */
static const char *text_fault(char *text, ssize_t *size)
{
    if (*size < 0) {
        return strerror(errno);
    }
    if (*size > SECRET_MAX) {
        return "longer than 4096 bytes";
    }
    if (*size > 0 && text[*size - 1] == '\n') {
        (*size)--;
    }
    if (*size == 0) {
        return "the file is empty";
    }
    if (memchr(text, '\0', (size_t)*size)) {
        return "the file contains a NUL byte; remove it";
    }
    return NULL;
}

static char *read_secret(int fd, const char *path, struct buffer *why)
{
    char text[SECRET_MAX + 1];
    char *secret = NULL;
    ssize_t size = descriptor_read(fd, text, sizeof text);
    const char *fault = text_fault(text, &size);

    if (fault) {
        (void)buffer_printf(why, "%s: %s", path,
                            fault); /* a failure sets why->failed, which the caller checks */
    } else {
        secret = strndup(text, (size_t)size);
        why->failed = !secret;
    }
    explicit_bzero(text, sizeof text);
    return secret;
}

char *secret_read_file(const char *path, bool must_be_private, struct buffer *why)
{
    char *secret = NULL;

    /* O_NONBLOCK: opening a FIFO must not block the start */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        (void)buffer_printf(
            why, "%s: %s", path,
            strerror(errno)); /* a failure sets why->failed, which the caller checks */
        return NULL;
    }
    if (check_file(fd, path, must_be_private, why) == 0) {
        secret = read_secret(fd, path, why);
    }
    (void)close(fd); /* the file was only read, so an error loses nothing */
    return secret;
}

char *secret_read_credential(const char *name, struct buffer *why)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    struct buffer path = BUFFER_INIT;
    char *secret = NULL;

    if (!directory || *directory == '\0') {
        /* a failure sets why->failed, which the caller checks */
        (void)buffer_printf(why,
                            "CREDENTIALS_DIRECTORY is not set; run leat as a systemd service with "
                            "LoadCredential=%s:FILE, or use a file",
                            name);
        return NULL;
    }
    if (buffer_printf(&path, "%s/%s", directory, name) == 0 && buffer_append(&path, "", 1) == 0) {
        secret = secret_read_file(path.data, false, why);
    } else {
        why->failed = true;
    }
    buffer_free(&path);
    return secret;
}
