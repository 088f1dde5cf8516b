/*
 * The settings that all workers of a queue share, except those of lanes: their names in leat conf,
 * and the form in which Redis stores them.
 */
#ifndef LEAT_CONFIG_TYPES_SHARED_SETTING_H
#define LEAT_CONFIG_TYPES_SHARED_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "config/table.h"

enum shared_kind {
    SHARED_DURATION,
    SHARED_NUMBER,
    SHARED_SIZE,
    SHARED_HISTORY, /* a number or an age; see config/types/history_rule.h */
    SHARED_RATE,
    SHARED_LANES
};

struct shared_setting {
    const char *name, *key; /* for people, and in Redis */
    enum shared_kind kind;
    bool may_be_none;               /* 0 is none, too */
    const char *section, *file_key; /* in a file */
    size_t offset;                  /* into struct config; not for SHARED_LANES */
};

enum { SHARED_SETTINGS = 10, SHARED_TEXT_SIZE = 64 };

extern const struct shared_setting shared_settings[SHARED_SETTINGS];

/* Returns the setting that Redis stores under this key, or NULL. */
const struct shared_setting *shared_setting_find(const char *key);

/* The row of the table of all keys, which has the range of a number. */
const struct table_row *shared_setting_row(const struct shared_setting *setting);

/* Writes a number of this kind (not SHARED_RATE, SHARED_LANES) as people write it. */
void shared_setting_format(enum shared_kind kind, int64_t number, char text[SHARED_TEXT_SIZE]);

/* Writes a stored value as people write it. A value that leat has not written may be cut. */
void shared_setting_show(const struct shared_setting *setting, const char *stored,
                         char text[SHARED_TEXT_SIZE]);

/* Writes the value in the configuration, as Redis would store it. */
void shared_setting_configured(const struct shared_setting *setting, const struct config *config,
                               char stored[SHARED_TEXT_SIZE]);

#endif
