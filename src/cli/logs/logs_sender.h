/*
 * Who sent a record of the journal: every program can send records with leat's fields. journald
 * adds fields with a leading underscore itself, which no sender can choose.
 */
#ifndef LEAT_CLI_LOGS_LOGS_SENDER_H
#define LEAT_CLI_LOGS_LOGS_SENDER_H

#include <stdbool.h>

#include <systemd/sd-journal.h>

#include "config/config.h"

struct logs_sender;

/* is_here: the journal is of this host. With [task] user, asks systemd for the unit's user. Returns
 * NULL without memory. */
struct logs_sender *logs_sender_new(const struct config *config, bool is_here);
void logs_sender_free(struct logs_sender *sender); /* NULL does nothing */

/* Returns true if leatd sent the current record: that of the queue's unit, or one that root or this
 * user runs outside of the unit. The program itself must be the one that is installed beside leat,
 * and no process of a task. */
bool logs_sender_is_leatd(const struct logs_sender *sender, sd_journal *handle);

#endif
