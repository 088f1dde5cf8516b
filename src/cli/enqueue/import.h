/*
 * leat import: types and functions that its parts share.
 */
#ifndef LEAT_CLI_ENQUEUE_IMPORT_H
#define LEAT_CLI_ENQUEUE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/cli.h"
#include "cli/lib/progress.h"
#include "queue/lists.h"

#define IMPORT_SHOWN 5 /* items of each key that a dry run shows */

/* A key that is imported. */
struct source {
    struct bytes key; /* followed by a NUL */
    const char *kind; /* for leat_intake; NULL: the key does not exist */
    uint64_t count;   /* items at the start */
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
    int status; /* exit status of the first failure */
};

/* Print what would be imported, or what was imported. Return 0, or an exit status after printing
 * the error. */
int import_show(const struct import *import);
int import_report(const struct import *import);

/* Adds the tasks of a file that leat export has written ("-": stdin), those that were running only
 * with `running`, and prints how many. Returns an exit status. */
int import_export(struct cli *cli, const char *path, bool running, bool json);

#endif
