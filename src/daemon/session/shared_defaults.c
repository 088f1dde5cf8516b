/*
 * Collects the shared settings of the config file, and compares them with those of the queue.
 */
#include "daemon/session/shared_defaults.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/types/lanes_rule.h"
#include "config/types/limits.h"
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

static int add_number(struct shared_defaults *shared_defaults, const char *name, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    return add(shared_defaults, name, text);
}

static int add_lane(struct shared_defaults *shared_defaults, const char *entry)
{
    const char *settings;
    char name[sizeof "lane:" + QUEUE_MAX_LANE];
    int length = (int)limits_split_lane(entry, &settings);
    (void)snprintf(name, sizeof name, "lane:%.*s", length, entry);
    return add(shared_defaults, name, settings);
}

static int add_lanes(struct shared_defaults *shared_defaults, char *const *list)
{
    for (; list && *list; list++) {
        if (add_lane(shared_defaults, *list)) {
            return -1;
        }
    }
    return 0;
}

int shared_defaults_make(struct shared_defaults *shared_defaults, const struct config *config)
{
    *shared_defaults = (struct shared_defaults){0};
    if (add_number(shared_defaults, "lease_ms", config->queue.lease_ms) ||
        add_number(shared_defaults, "max_crashes", config->queue.max_crashes) ||
        add_number(shared_defaults, "max_length", config->queue.max_length) ||
        add_number(shared_defaults, "max_task", config->queue.max_task) ||
        add_number(shared_defaults, "dead_keep_ms", config->dead.keep_ms) ||
        add_number(shared_defaults, "dead_keep_number", config->dead.keep_number) ||
        add(shared_defaults, "rate", config->limits.rate ? config->limits.rate : "") ||
        add_number(shared_defaults, "burst", config->limits.burst) ||
        add(shared_defaults, "lanes_only", lanes_rule_only(config)) ||
        add_lanes(shared_defaults, config->lanes.list)) {
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
            (void)buffer_printf(differences, "%s%s %s (not %s)", differences->size ? ", " : "",
                                name, *value ? value : "none", *ours ? ours : "none");
        }
    }
    shared_defaults_free(&shared_defaults);
}
