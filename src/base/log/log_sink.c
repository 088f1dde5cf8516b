/* Writes log records to the journal or stderr without blocking. */
#include "base/log/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    KEPT_MAX = 256 * 1024,     /* bytes of kept records */
    RETRY_MS = 5,              /* pause between two tries when closing */
    SEND_BUFFER = 1024 * 1024, /* for large records; the kernel lowers it to its limit */
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

    /* each record is sent to the address, so that a restarted journald is found again */
    if (journal_address(&address) != 0 || access(journal_path, W_OK) != 0) {
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }

    /* if this fails, long records are truncated */
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
        /* reopen it non-blocking; the inherited open file is shared with other processes */
        fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0) {
            return;
        }
        sink->fd = fd;
        sink->owned = true;
        sink->may_block = false;
    }
}

/* For blocking descriptors: writes at most as much as a writable pipe takes without blocking. */
static ssize_t put_careful(int fd, const char *data, size_t size)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};

    if (poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, data, size < PIPE_BUF ? size : PIPE_BUF);
}

/* Writes some of the bytes without blocking. Returns how many, or -1 with errno. */
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

/* Writes as much as possible and adds it to *written. Returns 0 if everything is written, otherwise
 * -1 with errno. */
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

/* Before the bytes of each piece that is kept. */
struct kept {
    size_t size, records;
};

bool log_sink_flush(struct log_sink *sink, size_t *lost)
{
    struct kept kept;
    size_t done = 0;
    bool blocked = false;

    while (done < sink->kept.size) {
        memcpy(&kept, sink->kept.data + done, sizeof kept);
        if (put_all(sink, sink->kept.data + done + sizeof kept, kept.size, &sink->first_written) !=
            0) {
            if (errno != EMSGSIZE) {
                blocked = true;
                break;
            }
            *lost += kept.records;
        }
        sink->first_written = 0;
        done += sizeof kept + kept.size;
    }
    buffer_consume(&sink->kept, done);
    return !blocked;
}

static enum log_sink_result keep_text(struct log_sink *sink, const struct buffer *text,
                                      size_t records)
{
    const struct kept kept = {.size = text->size, .records = records};

    /* reserve first, so that both parts are appended or none */
    if (buffer_reserve(&sink->kept, sizeof kept + text->size) != 0 ||
        buffer_append(&sink->kept, &kept, sizeof kept) != 0 ||
        buffer_append(&sink->kept, text->data, text->size) != 0) {
        sink->kept.failed = false;
        return LOG_SINK_LOST;
    }
    return LOG_SINK_KEPT;
}

enum log_sink_result log_sink_write(struct log_sink *sink, const struct buffer *text,
                                    size_t records, bool keep)
{
    bool room = sink->kept.size + text->size <= KEPT_MAX;
    enum log_sink_result result;
    size_t written = 0;

    /* keep the order: no record overtakes kept ones */
    if (sink->kept.size > 0) {
        return keep && room ? keep_text(sink, text, records) : LOG_SINK_LOST;
    }
    if (put_all(sink, text->data, text->size, &written) == 0) {
        return LOG_SINK_TAKEN;
    }
    if (errno == EMSGSIZE && sink->kind == LOG_SINK_JOURNAL) {
        return LOG_SINK_TOO_LONG;
    }

    /* a partly written line must be completed, even if `keep` is not set */
    if (!(keep && room) && written == 0) {
        return LOG_SINK_LOST;
    }
    result = keep_text(sink, text, records);
    if (result == LOG_SINK_KEPT) {
        sink->first_written = written;
    }
    return result;
}

/* Drops the kept records and returns their number. */
static size_t discard_kept(struct log_sink *sink)
{
    struct kept kept;
    size_t count = 0, done = 0;

    for (; done < sink->kept.size; done += sizeof kept + kept.size) {
        memcpy(&kept, sink->kept.data + done, sizeof kept);
        count += kept.records;
    }
    buffer_free(&sink->kept);
    sink->first_written = 0;
    return count;
}

size_t log_sink_close(struct log_sink *sink, int patience_ms)
{
    size_t lost = 0;

    /* poll() does not show when the journal's queue has room, so try again and again */
    while (!log_sink_flush(sink, &lost) && patience_ms > 0) {
        (void)poll(NULL, 0, RETRY_MS); /* pause; it may end early */
        patience_ms -= RETRY_MS;
    }
    lost += discard_kept(sink);
    if (sink->owned) {
        (void)close(sink->fd); /* every record was written or counted, so an error loses nothing */
    }
    *sink = (struct log_sink)LOG_SINK_INIT;
    return lost;
}
