/*
 * Admission by pressure: if [admission] sets limits, the worker claims nothing while its host's
 * processes wait too much for memory, disks or processors, or little memory is free. The kernel's
 * figures are read when tasks are about to be claimed, at most once a second, and every second
 * while a limit is exceeded; an idle worker reads nothing.
 */
#ifndef LEAT_DAEMON_CLAIM_ADMISSION_H
#define LEAT_DAEMON_CLAIM_ADMISSION_H

#include <stdbool.h>

#include "daemon/session/worker_context.h"

struct admission;

/* Returns NULL without memory. */
struct admission *admission_new(struct worker_context *worker);

/* The config was replaced. */
void admission_reload(struct admission *admission);
void admission_free(struct admission *admission);

/* Tasks may be about to be claimed: reads the figures again if they are old. Returns whether
 * pressure has begun or ended. */
bool admission_check(struct admission *admission);

/* The exceeded limit as a text for people, which stays the same until pressure ends; NULL: none. */
const char *admission_trouble(const struct admission *admission);

#endif
