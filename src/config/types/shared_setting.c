/* The table of shared settings, and their values for people and for Redis. */
#include "config/types/shared_setting.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "config/types/history_rule.h"
#include "config/types/lanes_rule.h"

const struct shared_setting shared_settings[SHARED_SETTINGS] = {
    {"lease", "lease_ms", SHARED_DURATION, false, "queue", "lease",
     offsetof(struct config, queue.lease_ms)},
    {"max_crashes", "max_crashes", SHARED_NUMBER, false, "queue", "max_crashes",
     offsetof(struct config, queue.max_crashes)},
    {"max_length", "max_length", SHARED_NUMBER, true, "queue", "max_length",
     offsetof(struct config, queue.max_length)},
    {"max_task", "max_task", SHARED_SIZE, true, "queue", "max_task",
     offsetof(struct config, queue.max_task)},
    {"history", "history", SHARED_HISTORY, true, "queue", "history",
     offsetof(struct config, queue.history)},
    {"dead_keep", "dead_keep_ms", SHARED_DURATION, true, "dead", "keep",
     offsetof(struct config, dead.keep_ms)},
    {"dead_keep_number", "dead_keep_number", SHARED_NUMBER, true, "dead", "keep_number",
     offsetof(struct config, dead.keep_number)},
    {"rate", "rate", SHARED_RATE, true, "limits", "rate", offsetof(struct config, limits.rate)},
    {"burst", "burst", SHARED_NUMBER, false, "limits", "burst",
     offsetof(struct config, limits.burst)},
    {"lanes_only", "lanes_only", SHARED_LANES, false, "lanes", "only", 0},
};

const struct table_row *shared_setting_row(const struct shared_setting *setting)
{
    return table_find(setting->section, setting->file_key);
}

const struct shared_setting *shared_setting_find(const char *key)
{
    for (size_t i = 0; i < SHARED_SETTINGS; i++) {
        if (strcmp(key, shared_settings[i].key) == 0) {
            return &shared_settings[i];
        }
    }
    return NULL;
}

void shared_setting_format(enum shared_kind kind, int64_t number, char text[SHARED_TEXT_SIZE])
{
    if (kind == SHARED_DURATION) {
        units_format_duration(number, text, SHARED_TEXT_SIZE);
    } else if (kind == SHARED_SIZE) {
        units_format_size(number, text);
    } else {
        (void)units_format_integer(number, text);
    }
}

void shared_setting_show(const struct shared_setting *setting, const char *stored,
                         char text[SHARED_TEXT_SIZE])
{
    bool none = *stored == '\0' || (setting->may_be_none && strcmp(stored, "0") == 0);
    int64_t value;

    if (!none && setting->kind != SHARED_RATE &&
        units_parse_integer(stored, 0, INT64_MAX, &value) == 0) {
        shared_setting_format(setting->kind, value, text);
    } else {
        (void)snprintf(text, SHARED_TEXT_SIZE, "%s", none ? "none" : stored);
    }
}

void shared_setting_configured(const struct shared_setting *setting, const struct config *config,
                               char stored[SHARED_TEXT_SIZE])
{
    const char *member = (const char *)config + setting->offset;
    const char *rate;
    int64_t value;

    if (setting->kind == SHARED_LANES) {
        (void)snprintf(stored, SHARED_TEXT_SIZE, "%s", lanes_rule_only(config));
    } else if (setting->kind == SHARED_RATE) {
        memcpy(&rate, member, sizeof rate);
        (void)snprintf(stored, SHARED_TEXT_SIZE, "%s", rate ? rate : "");
    } else {
        memcpy(&value, member, sizeof value);
        history_rule_format(value, stored, SHARED_TEXT_SIZE);
    }
}
