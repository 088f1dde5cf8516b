#include "daemon/seeds.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/limits.h"

/* Both are copied. */
static int add(struct seeds *seeds, const char *name, const char *value)
{
    struct queue_seed *grown = reallocarray(seeds->list, seeds->count + 1, sizeof *grown);
    if (!grown) {
        return -1;
    }
    seeds->list = grown;
    struct queue_seed seed = {strdup(name), strdup(value)};
    grown[seeds->count++] = seed;
    return seed.name && seed.value ? 0 : -1;
}

static int add_number(struct seeds *seeds, const char *name, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value); /* fits */
    return add(seeds, name, text);
}

static int add_lane(struct seeds *seeds, const char *entry)
{
    const char *settings;
    char name[sizeof "lane:" + LIMITS_LANE_MOST];
    int length = (int)limits_split_lane(entry, &settings);
    (void)snprintf(name, sizeof name, "lane:%.*s", length, entry); /* fits */
    return add(seeds, name, settings);
}

static int add_lanes(struct seeds *seeds, char *const *list)
{
    for (; list && *list; list++) {
        if (add_lane(seeds, *list)) {
            return -1;
        }
    }
    return 0;
}

int seeds_make(struct seeds *seeds, const struct config *config)
{
    *seeds = (struct seeds){0};
    if (add_number(seeds, "lease_ms", config->queue.lease_ms) ||
        add_number(seeds, "max_crashes", config->queue.max_crashes) ||
        add_number(seeds, "max_length", config->queue.max_length) ||
        add_number(seeds, "dead_keep_ms", config->dead.keep_ms) ||
        add_number(seeds, "dead_keep_number", config->dead.keep_number) ||
        add(seeds, "rate", config->limits.rate ? config->limits.rate : "") ||
        add_number(seeds, "burst", config->limits.burst) || add_lanes(seeds, config->lanes.list)) {
        seeds_free(seeds);
        return -1;
    }
    return 0;
}

void seeds_free(struct seeds *seeds)
{
    for (size_t i = 0; i < seeds->count; i++) {
        /* strings of our own, told to others as const */
        free((char *)(uintptr_t)seeds->list[i].name);
        free((char *)(uintptr_t)seeds->list[i].value);
    }
    free(seeds->list);
    *seeds = (struct seeds){0};
}

static const char *value_of(const struct seeds *seeds, const char *name)
{
    for (size_t i = 0; i < seeds->count; i++) {
        if (strcmp(seeds->list[i].name, name) == 0) {
            return seeds->list[i].value;
        }
    }
    return NULL;
}

void seeds_compare(const struct config *config, const struct redisReply *ruling,
                   struct buffer *differences)
{
    struct seeds seeds;
    if (seeds_make(&seeds, config)) {
        return; /* only a warning is lost */
    }
    for (size_t i = 0; i + 1 < ruling->elements; i += 2) {
        const char *name = ruling->element[i]->str;
        const char *value = ruling->element[i + 1]->str;
        const char *ours = value_of(&seeds, name);
        if (ours && strcmp(ours, value) != 0) {
            (void)buffer_printf(differences, "%s%s %s (not %s)", differences->size ? ", " : "",
                                name, *value ? value : "none", *ours ? ours : "none");
        }
    }
    seeds_free(&seeds);
}
