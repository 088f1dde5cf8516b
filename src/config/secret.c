#include "config/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_MAX = 4096 };

/* All or nothing of what the descriptor gives. Returns the size, or -1 with errno. */
static ssize_t read_all(int fd, char *data, size_t size)
{
    size_t used = 0;
    ssize_t got;

    while (used < size) {
        got = read(fd, data + used, size - used);
        if (got == 0)
            break;
        if (got > 0)
            used += (size_t)got;
        else if (errno != EINTR)
            return -1;
    }
    return (ssize_t)used;
}

/* What is wrong with the file itself, or NULL. */
static const char *file_fault(int fd, bool must_be_private)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "it is not a regular file";
    if (must_be_private && (status.st_mode & S_IRWXO) != 0)
        return "all users can reach it; run chmod o= on it";
    return NULL;
}

/* What is wrong with the text, or NULL. One newline at its end is taken off. */
static const char *text_fault(char *text, ssize_t *size)
{
    if (*size < 0)
        return strerror(errno);
    if (*size > SECRET_MAX)
        return "it is longer than 4096 bytes";
    if (*size > 0 && text[*size - 1] == '\n')
        (*size)--;
    if (*size == 0)
        return "it is empty";
    if (memchr(text, '\0', (size_t)*size) != NULL)
        return "it has a NUL byte in it";
    return NULL;
}

char *secret_read_file(const char *path, bool must_be_private, struct buffer *why)
{
    char text[SECRET_MAX + 1];
    const char *fault;
    char *secret = NULL;
    ssize_t size = 0;

    /* not blocking: a fifo must not hang the start */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        fault = strerror(errno);
    } else {
        fault = file_fault(fd, must_be_private);
        if (fault == NULL) {
            size = read_all(fd, text, sizeof(text));
            fault = text_fault(text, &size);
        }
        (void)close(fd); /* only read from: nothing can be lost */
    }
    if (fault != NULL) {
        (void)buffer_printf(why, "%s: %s", path, fault); /* the reader looks at its failure */
    } else {
        secret = strndup(text, (size_t)size);
        why->failed = secret == NULL;
    }
    explicit_bzero(text, sizeof(text));
    return secret;
}

char *secret_read_credential(const char *name, struct buffer *why)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    struct buffer path = BUFFER_INIT;
    char *secret = NULL;

    if (directory == NULL || *directory == '\0') {
        /* the reader of `why` looks at its failure */
        (void)buffer_printf(why,
                            "CREDENTIALS_DIRECTORY is not set; run this as a systemd service with "
                            "LoadCredential=%s:FILE, or use a file",
                            name);
        return NULL;
    }
    if (buffer_printf(&path, "%s/%s", directory, name) == 0 && buffer_append(&path, "", 1) == 0)
        secret = secret_read_file(path.data, false, why);
    else
        why->failed = true;
    buffer_free(&path);
    return secret;
}
