/*
 * leat import: what its parts share.
 */
#ifndef LEAT_CLI_ENQUEUE_IMPORT_H
#define LEAT_CLI_ENQUEUE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/cli.h"
#include "cli/lib/progress.h"
#include "queue/lists.h"

#define IMPORT_SHOWN 5 /* items that a dry run shows of each key */

/* A key that is imported. */
struct source {
    struct bytes key; /* with a NUL behind it */
    const char *kind; /* as leat_intake has it; NULL: there is no such key */
    uint64_t count;   /* items at the beginning */
    uint64_t taken, added, left;
    struct redisReply *preview;
};

struct import {
    struct cli *cli;
    struct source *sources;
    size_t count;
    const char *field, *lane;
    bool unique, marks, dry_run, json;
    uint64_t limit, total, taken; /* items of all keys */
    struct progress progress;
    int status; /* of the first failure */
};

/* Prints what would be taken, or what was. Returns 0 or an exit status. */
int import_show(const struct import *import);
int import_report(const struct import *import);

#endif
