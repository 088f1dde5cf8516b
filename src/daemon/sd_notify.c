/*
 * Sends sd_notify messages.
 */
#include "daemon/sd_notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/escape.h"
#include "base/log/log.h"
#include "base/process/descriptor.h"

/* The worker gives up waiting at the end of its stop; systemd waits this much longer. */
#define STOP_SPARE_MS 5000

enum { TROUBLE_SIZE = 1024 }; /* of a text that is shown; a longer one is cut */

static void send_state(const char *state)
{
    int sent = sd_notify(0, state);
    if (sent < 0) {
        log_text(LOG_DEBUG, "cannot notify the service manager: %s", state);
    }
}

/* Returns the size of the address of the manager's socket; 0: it has another form. A name that
 * begins with @ is no file. */
static socklen_t find_socket(struct sockaddr_un *address)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t size = path ? strlen(path) : 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (size < 2 || size >= sizeof address->sun_path || (*path != '/' && *path != '@')) {
        return 0;
    }
    memcpy(address->sun_path + 1, path + 1, size - 1);
    address->sun_path[0] = (char)(*path == '/' ? '/' : '\0');
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (*path == '/'));
}

/* Returns false if the manager's socket is full now. sd_notify would wait for room, and every
 * program of the host can fill it. */
static bool send_if_free(const char *state)
{
    struct sockaddr_un address;
    socklen_t size = find_socket(&address);
    if (size == 0) {
        send_state(state);
        return true;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ssize_t sent = fd < 0 ? -1
                          : sendto(fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
                                   (const struct sockaddr *)&address, size);
    bool is_full = sent < 0 && errno == EAGAIN;
    if (sent < 0 && !is_full) {
        log_text(LOG_DEBUG, "cannot notify the service manager: %s", strerror(errno));
    }
    descriptor_close(&fd);
    return !is_full;
}

bool sd_notify_is_wanted(void)
{
    return getenv("NOTIFY_SOCKET");
}

int64_t sd_notify_watchdog_ms(void)
{
    uint64_t usec = 0;
    return sd_watchdog_enabled(0, &usec) > 0 ? (int64_t)(usec / 1000) : 0;
}

void sd_notify_ready(void)
{
    send_state("READY=1");
}

bool sd_notify_alive(void)
{
    return send_if_free("WATCHDOG=1");
}

bool sd_notify_status(const struct worker_figures *figures)
{
    /* it may quote the server, which must not add messages of its own behind a line break */
    char trouble[TROUBLE_SIZE];
    escape_copy((struct bytes){figures->trouble, strlen(figures->trouble)}, trouble,
                sizeof trouble);
    const char *prefix = "";
    const uint64_t *ended = figures->ended;
    if (!figures->connected) {
        prefix = *trouble ? "no session with Redis: " : "connecting to Redis";
    }
    char tasks[48] = "", others[48] = "";
    if (figures->batch > 1) {
        (void)snprintf(tasks, sizeof tasks, " with %zu tasks", figures->running); /* fits */
    }
    if (figures->others > 0) {
        (void)snprintf(others, sizeof others, ", %zu by former versions",
                       figures->others); /* fits */
    }
    char state[TROUBLE_SIZE + 512];
    (void)snprintf(state, sizeof state,
                   "STATUS=%s%s%s%s: %zu of %zu slots busy%s%s; %" PRIu64 " succeeded, %" PRIu64
                   " retried, %" PRIu64 " dead, %" PRIu64 " returned, %" PRIu64 " cancelled",
                   prefix, trouble, *prefix || *trouble ? "; " : "", figures->state,
                   figures->busy + figures->others, figures->slots, tasks, others,
                   ended[VERDICT_SUCCESS], ended[VERDICT_RETRY], ended[VERDICT_DEAD],
                   ended[VERDICT_RELEASE], ended[VERDICT_CANCELLED]); /* fits */
    return send_if_free(state);
}

void sd_notify_reloading(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now)) {
        return;
    }
    int64_t usec = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    if (sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, usec) < 0) {
        log_text(LOG_DEBUG, "cannot notify the service manager: RELOADING=1");
    }
}

void sd_notify_main_pid(pid_t pid)
{
    if (sd_notifyf(0, "MAINPID=%ld", (long)pid) < 0) {
        log_text(LOG_ERR, "cannot notify the service manager: MAINPID");
    }
}

void sd_notify_stopping(int64_t most_ms)
{
    if (sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRId64,
                   (most_ms + STOP_SPARE_MS) * 1000) < 0) {
        log_text(LOG_DEBUG, "cannot notify the service manager: STOPPING=1");
    }
}
