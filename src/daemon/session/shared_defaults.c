/*
 * Collects the shared settings of the config file, and compares them with those of the queue.
 */
#include "daemon/session/shared_defaults.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/types/limits.h"
#include "config/types/shared_setting.h"
#include "queue/calls.h"
#include "queue/shared/limits.h"

/* Copies both. */
static int add(struct shared_defaults *shared_defaults, const char *name, const char *value)
{
    struct queue_default *grown =
        reallocarray(shared_defaults->list, shared_defaults->count + 1, sizeof *grown);
    if (!grown) {
        return -1;
    }
    shared_defaults->list = grown;
    struct queue_default entry = {strdup(name), strdup(value)};
    grown[shared_defaults->count++] = entry;
    return entry.name && entry.value ? 0 : -1;
}

static int add_lane(struct shared_defaults *shared_defaults, const char *entry)
{
    const char *settings;
    char name[sizeof "lane:" + QUEUE_MAX_LANE];
    int length = (int)limits_split_lane(entry, &settings);
    (void)snprintf(name, sizeof name, "lane:%.*s", length, entry);
    return add(shared_defaults, name, settings);
}

static int add_all(struct shared_defaults *shared_defaults, const struct config *config)
{
    char stored[SHARED_TEXT_SIZE];
    for (size_t i = 0; i < SHARED_SETTINGS; i++) {
        shared_setting_configured(&shared_settings[i], config, stored);
        if (add(shared_defaults, shared_settings[i].key, stored)) {
            return -1;
        }
    }
    for (char *const *lane = config->lanes.list; lane && *lane; lane++) {
        if (add_lane(shared_defaults, *lane)) {
            return -1;
        }
    }
    return 0;
}

int shared_defaults_make(struct shared_defaults *shared_defaults, const struct config *config)
{
    *shared_defaults = (struct shared_defaults){0};
    if (add_all(shared_defaults, config)) {
        shared_defaults_free(shared_defaults);
        return -1;
    }
    return 0;
}

void shared_defaults_free(struct shared_defaults *shared_defaults)
{
    for (size_t i = 0; i < shared_defaults->count; i++) {
        /* the strings are owned; they are const for other readers */
        free((char *)(uintptr_t)shared_defaults->list[i].name);
        free((char *)(uintptr_t)shared_defaults->list[i].value);
    }
    free(shared_defaults->list);
    *shared_defaults = (struct shared_defaults){0};
}

static const char *value_of(const struct shared_defaults *shared_defaults, const char *name)
{
    for (size_t i = 0; i < shared_defaults->count; i++) {
        if (strcmp(shared_defaults->list[i].name, name) == 0) {
            return shared_defaults->list[i].value;
        }
    }
    return NULL;
}

/* A lane has its name and its settings in the same form everywhere. */
static void add_difference(struct buffer *differences, const char *name, const char *value,
                           const char *ours)
{
    const struct shared_setting *setting = shared_setting_find(name);
    char shown[SHARED_TEXT_SIZE] = "", our_shown[SHARED_TEXT_SIZE] = "";
    if (setting) {
        shared_setting_show(setting, value, shown);
        shared_setting_show(setting, ours, our_shown);
        name = setting->name;
        value = shown;
        ours = our_shown;
    }
    /* a failed append loses only a warning */
    (void)buffer_printf(differences, "%s%s %s (not %s)", differences->size ? ", " : "", name,
                        *value ? value : "none", *ours ? ours : "none");
}

void shared_defaults_compare(const struct config *config, const struct redisReply *settings,
                             struct buffer *differences)
{
    struct shared_defaults shared_defaults;
    if (shared_defaults_make(&shared_defaults, config)) {
        return; /* only a warning is lost */
    }
    for (size_t i = 0; i + 1 < settings->elements; i += 2) {
        const char *name = settings->element[i]->str;
        const char *value = settings->element[i + 1]->str;
        const char *ours = value_of(&shared_defaults, name);
        if (ours && strcmp(ours, value) != 0) {
            add_difference(differences, name, value, ours);
        }
    }
    shared_defaults_free(&shared_defaults);
}
