/*
 * Notifications to the service manager: readiness, status, the watchdog, reloads, stopping. Nothing
 * is sent if no manager listens.
 */
#ifndef LEAT_DAEMON_SD_NOTIFY_H
#define LEAT_DAEMON_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/worker.h"

bool sd_notify_is_wanted(void);

/* Returns the timeout of the watchdog: call sd_notify_alive at least twice in this time. 0: no
 * watchdog. */
int64_t sd_notify_watchdog_ms(void);

void sd_notify_ready(void);
void sd_notify_reloading(void);

/* These come all the time, so they do not wait. Each returns false if the manager's socket is full
 * now: call it again later. */
bool sd_notify_alive(void);
bool sd_notify_status(const struct worker_figures *figures);

/* From now on, that process is the main one of the service: no others may send notifications. */
void sd_notify_main_pid(pid_t pid);

/* Stopping has begun and may take this long. */
void sd_notify_stopping(int64_t most_ms);

#endif
