/*
 * What the service manager is told: readiness, status, the watchdog, reloads, stopping. Nothing is
 * sent where no manager listens.
 */
#ifndef LEAT_DAEMON_SD_NOTIFY_H
#define LEAT_DAEMON_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker.h"

bool sd_notify_is_wanted(void);

/* Half of this is the longest time between two notify_alive; 0: no watchdog. */
int64_t sd_notify_watchdog_ms(void);

void sd_notify_ready(void);
void sd_notify_alive(void);
void sd_notify_status(const struct worker_figures *figures);
void sd_notify_reloading(void);

/* Stopping, which may take that long. */
void sd_notify_stopping(int64_t most_ms);

#endif
