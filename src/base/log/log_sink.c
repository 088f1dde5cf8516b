#include "base/log/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    KEPT_MAX = 256 * 1024,     /* bytes of records that wait */
    RETRY_MS = 5,              /* at closing, the pause between two tries */
    SEND_BUFFER = 1024 * 1024, /* a large record may need it; the kernel lowers it to its limit */
};

static const char *journal_path = "/run/systemd/journal/socket";

void log_sink_set_journal_path(const char *path)
{
    journal_path = path;
}

static int journal_address(struct sockaddr_un *address)
{
    size_t length = strlen(journal_path);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address->sun_path, journal_path, length + 1);
    return 0;
}

int log_sink_open_journal(struct log_sink *sink)
{
    struct sockaddr_un address;
    int fd, size = SEND_BUFFER;

    /* each record names the address, so that a journald that was restarted is found again */
    if (journal_address(&address) != 0 || access(journal_path, W_OK) != 0) {
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }

    /* without a larger buffer long records are cut, no worse */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    sink->kind = LOG_SINK_JOURNAL;
    sink->fd = fd;
    sink->owned = true;
    sink->may_block = false;
    return 0;
}

void log_sink_open_stderr(struct log_sink *sink)
{
    struct stat status;
    int fd;

    sink->kind = LOG_SINK_FILE;
    sink->fd = STDERR_FILENO;
    sink->owned = false;
    sink->may_block = true;
    if (fstat(STDERR_FILENO, &status) != 0) {
        return;
    }
    if (S_ISSOCK(status.st_mode)) {
        sink->kind = LOG_SINK_SOCKET;
    } else if (S_ISREG(status.st_mode)) {
        sink->may_block = false;
    } else {
        /* a description of our own can be non-blocking; the inherited one belongs to others too */
        fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0) {
            return;
        }
        sink->fd = fd;
        sink->owned = true;
        sink->may_block = false;
    }
}

/* Blocking descriptors: at most what a pipe that says it is writable takes without waiting. */
static ssize_t put_careful(int fd, const char *data, size_t size)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};

    if (poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, data, size < PIPE_BUF ? size : PIPE_BUF);
}

/* Writes some of the bytes now. Returns how many, or -1 with errno. */
static ssize_t put(const struct log_sink *sink, const char *data, size_t size)
{
    struct sockaddr_un address;

    switch (sink->kind) {
    case LOG_SINK_JOURNAL:
        if (journal_address(&address) != 0) {
            return -1;
        }
        return sendto(sink->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (const struct sockaddr *)&address, sizeof address);
    case LOG_SINK_SOCKET:
        return send(sink->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    case LOG_SINK_FILE:
        break;
    }
    return sink->may_block ? put_careful(sink->fd, data, size) : write(sink->fd, data, size);
}

/* Writes as much as goes. *written grows; returns 0 when all is out, -1 with errno otherwise. */
static int put_all(const struct log_sink *sink, const char *data, size_t size, size_t *written)
{
    ssize_t result;

    while (*written < size) {
        result = put(sink, data + *written, size - *written);
        if (result > 0) {
            *written += (size_t)result;
        } else if (result == 0 || errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

bool log_sink_flush(struct log_sink *sink, size_t *lost)
{
    size_t length, done = 0;
    bool blocked = false;

    while (done < sink->kept.size) {
        memcpy(&length, sink->kept.data + done, sizeof length);
        if (put_all(sink, sink->kept.data + done + sizeof length, length, &sink->first_written) !=
            0) {
            if (errno != EMSGSIZE) {
                blocked = true;
                break;
            }
            (*lost)++;
        }
        sink->first_written = 0;
        done += sizeof length + length;
    }
    buffer_consume(&sink->kept, done);
    return !blocked;
}

static enum log_sink_result keep_record(struct log_sink *sink, const struct buffer *record)
{
    size_t needed = sizeof record->size + record->size;

    /* both parts or none: the room is made first */
    if (buffer_reserve(&sink->kept, needed) != 0 ||
        buffer_append(&sink->kept, &record->size, sizeof record->size) != 0 ||
        buffer_append(&sink->kept, record->data, record->size) != 0) {
        sink->kept.failed = false;
        return LOG_SINK_LOST;
    }
    return LOG_SINK_KEPT;
}

enum log_sink_result log_sink_write(struct log_sink *sink, const struct buffer *record, bool keep)
{
    bool room = sink->kept.size + record->size <= KEPT_MAX;
    enum log_sink_result result;
    size_t written = 0;

    /* the order stays: nothing overtakes what is kept */
    if (sink->kept.size > 0) {
        return keep && room ? keep_record(sink, record) : LOG_SINK_LOST;
    }
    if (put_all(sink, record->data, record->size, &written) == 0) {
        return LOG_SINK_TAKEN;
    }
    if (errno == EMSGSIZE && sink->kind == LOG_SINK_JOURNAL) {
        return LOG_SINK_TOO_LONG;
    }

    /* a line that is half out has to be ended whatever it is worth */
    if (!(keep && room) && written == 0) {
        return LOG_SINK_LOST;
    }
    result = keep_record(sink, record);
    if (result == LOG_SINK_KEPT) {
        sink->first_written = written;
    }
    return result;
}

/* How many records are kept; drops them. */
static size_t discard_kept(struct log_sink *sink)
{
    size_t count = 0, length, done = 0;

    for (; done < sink->kept.size; done += sizeof length + length, count++) {
        memcpy(&length, sink->kept.data + done, sizeof length);
    }
    buffer_free(&sink->kept);
    sink->first_written = 0;
    return count;
}

size_t log_sink_close(struct log_sink *sink, int patience_ms)
{
    size_t lost = 0;

    /* poll() does not tell when a journal's queue has room, so this asks again and again */
    while (!log_sink_flush(sink, &lost) && patience_ms > 0) {
        (void)poll(NULL, 0, RETRY_MS); /* a pause; ending it early is as good */
        patience_ms -= RETRY_MS;
    }
    lost += discard_kept(sink);
    if (sink->owned) {
        (void)close(sink->fd); /* every record was written or counted; nothing depends on this */
    }
    *sink = (struct log_sink)LOG_SINK_INIT;
    return lost;
}
