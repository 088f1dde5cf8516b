/*
 * Sends sd_notify messages.
 */
#include "daemon/sd_notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/escape.h"
#include "base/log/log.h"

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

void sd_notify_alive(void)
{
    send_state("WATCHDOG=1");
}

void sd_notify_status(const struct worker_figures *figures)
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
    int sent =
        sd_notifyf(0,
                   "STATUS=%s%s%s%s: %zu of %zu slots busy%s%s; %" PRIu64 " succeeded, %" PRIu64
                   " retried, %" PRIu64 " dead, %" PRIu64 " returned, %" PRIu64 " cancelled",
                   prefix, trouble, *prefix || *trouble ? "; " : "", figures->state,
                   figures->busy + figures->others, figures->slots, tasks, others,
                   ended[VERDICT_SUCCESS], ended[VERDICT_RETRY], ended[VERDICT_DEAD],
                   ended[VERDICT_RELEASE], ended[VERDICT_CANCELLED]);
    if (sent < 0) {
        log_text(LOG_DEBUG, "cannot notify the service manager: STATUS");
    }
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
