/*
 * The token that a browser or Prometheus shows to the board.
 */
#include "board/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/process/descriptor.h"

#define RANDOM_BYTES 20
#define LEAST 20 /* characters of a token that somebody has chosen */

static int failed(const char *what, const char *path, char *why, size_t why_size)
{
    (void)snprintf(why, why_size, "cannot %s %s: %s", what, path, strerror(errno));
    return -1;
}

/* The group may read it, for Prometheus; a file that is not whole goes. */
static int make_file(const char *path, char token[TOKEN_SIZE], char *why, size_t why_size)
{
    unsigned char bytes[RANDOM_BYTES];
    int fd, size = 0;

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
        return failed("make a token for", path, why, why_size);
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        size += snprintf(token + size, TOKEN_SIZE - (size_t)size, "%02x", bytes[i]);
    }
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0) {
        return failed("create", path, why, why_size);
    }
    if (write(fd, token, (size_t)size) != size || fsync(fd) != 0 || close(fd) != 0) {
        int error = errno;
        (void)unlink(path);
        errno = error;
        return failed("write", path, why, why_size);
    }
    return 0;
}

static int check(const char *path, char *token, char *why, size_t why_size)
{
    size_t size = strcspn(token, "\r\n");
    bool whole = strspn(token + size, "\r\n") == strlen(token + size);

    token[size] = '\0';
    if (whole && size >= LEAST && bytes_are_letters((struct bytes){token, size}, "-_")) {
        return 0;
    }
    (void)snprintf(why, why_size,
                   "%s: the token has to be one line of %d to %d letters, digits, - and _; remove "
                   "the file to have one made",
                   path, LEAST, TOKEN_SIZE - 1);
    return -1;
}

int token_load(const char *path, bool make, char token[TOKEN_SIZE], char *why, size_t why_size)
{
    /* O_NONBLOCK: with --url, root reads in a folder where the board's user can put a FIFO */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t size;

    if (fd < 0 && errno == ENOENT && make) {
        return make_file(path, token, why, why_size);
    }
    if (fd < 0) {
        (void)snprintf(why, why_size, "cannot read the token in %s: %s%s", path, strerror(errno),
                       errno == ENOENT   ? "; start leat-board first"
                       : errno == EACCES ? "; run as root, or as a member of the file's group"
                                         : "");
        return -1;
    }
    size = descriptor_read(fd, token, TOKEN_SIZE - 1);
    descriptor_close(&fd);
    if (size < 0) {
        return failed("read the token in", path, why, why_size);
    }
    token[size] = '\0';
    return check(path, token, why, why_size);
}
