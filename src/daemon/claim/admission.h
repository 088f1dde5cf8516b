/*
 * Admission by pressure: where [admission] names limits, the worker claims nothing while the host
 * is pressed: its processes wait for memory, disks or processors, or little memory is free. What
 * the kernel says is read when tasks are about to be claimed, once a second at the most, and each
 * second while the host is pressed; an idle worker reads nothing.
 */
#ifndef LEAT_DAEMON_CLAIM_ADMISSION_H
#define LEAT_DAEMON_CLAIM_ADMISSION_H

#include <stdbool.h>

#include "config/config.h"

struct ev_loop;
struct admission;

/* changed: the host is pressed, or is so no longer. config must outlive it or be replaced. Returns
 * NULL without memory. */
struct admission *admission_new(struct ev_loop *loop, const struct config *config,
                                void (*changed)(void *context), void *context);
void admission_set_config(struct admission *admission, const struct config *config);
void admission_free(struct admission *admission);

/* Tasks may be about to be claimed: looks again where what is known is old. */
void admission_look(struct admission *admission);

/* The limit that is exceeded, as text for people that stays the same while it is; NULL: none. */
const char *admission_trouble(const struct admission *admission);

#endif
