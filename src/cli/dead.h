/*
 * leat dead: which letters are meant, and what is done with them.
 */
#ifndef LEAT_CLI_DEAD_H
#define LEAT_CLI_DEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

struct dead_options {
    char **ids; /* tasks' ids or letters' entry ids; none: the filters choose */
    size_t id_count;
    bool all, dry_run, yes, json, payload;
    const char *cause, *matching; /* NULL: any */
    int64_t older_ms;             /* −1: any */
    int64_t limit;                /* of the list; 0: none */
};

bool dead_has_filter(const struct dead_options *options);

/* Called for each letter that the filters let through, oldest first; true goes on. */
typedef bool dead_visit(void *context, const struct redisReply *row);

/* Returns 0 or an exit status. */
int dead_walk(struct cli *cli, const struct dead_options *options, dead_visit *visit,
              void *context);

struct letter {
    char dead_id[48]; /* of the entry */
    char tid[48];     /* of the task */
};

struct letters {
    struct letter *items;
    size_t count, capacity;
};

/* Collects the letters that are meant, by ids or filters. What is not found is said on stderr and
 * counted. Returns 0 or an exit status. */
int dead_select(struct cli *cli, const struct dead_options *options, struct letters *letters,
                size_t *missing);

/* leat dead list, and leat dead retry or drop. Return an exit status. */
int dead_list(struct cli *cli, const struct dead_options *options);
int dead_act(struct cli *cli, const struct dead_options *options, bool retry);

#endif
