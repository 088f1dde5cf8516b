/*
 * Ids of tasks that were typed as a prefix. A prefix consists of the first digits of an id, 6 to 13
 * of them. It is never taken for one if it has ten digits: that is a time in seconds, which is
 * often a label. A whole id is no prefix of another one.
 */
#ifndef LEAT_CLI_SHOW_EXPAND_ID_H
#define LEAT_CLI_SHOW_EXPAND_ID_H

#include <stdbool.h>

#include "base/bytes.h"
#include "cli/lib/cli.h"

struct expanded_id {
    const char *id; /* as typed, or the whole id, which is in tid */
    char tid[48];
};

/* Expands the id if it is the prefix of exactly one. `typed` must outlive the result. Returns 0, or
 * an exit status after printing the error: EX_USAGE if it is empty or the prefix of several ids. */
int expand_id(struct cli *cli, const char *typed, struct expanded_id *expanded);

/* Whether this may be the prefix of an id. */
bool expand_id_is_prefix(const char *typed);

/* Takes one more id that begins with the prefix. Returns 0, or EX_USAGE after printing that another
 * one was taken before. */
int expand_id_take(const char *typed, struct bytes tid, struct expanded_id *expanded);

/* For a message that nothing was found: "; " and how long a prefix is, if only digits were typed
 * but not so many, or else "". A static string. */
const char *expand_id_hint(const char *typed);

#endif
