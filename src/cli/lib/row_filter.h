/*
 * Filters of rows of leat_list, for leat list and leat dead.
 */
#ifndef LEAT_CLI_LIB_ROW_FILTER_H
#define LEAT_CLI_LIB_ROW_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/cli.h"

struct redisReply;

/* A row must pass all of them. NULL or −1: any. Begin with ROW_FILTER_ANY. */
struct row_filter {
    const char *cause, *lane;    /* the whole value; "" for none */
    const char *label, *command; /* patterns of fnmatch, for the whole value */
    const char *worker;          /* such a pattern, for its name or its host */
    int64_t older_ms, newer_ms;  /* ages */
};

#define ROW_FILTER_ANY ((struct row_filter){.older_ms = -1, .newer_ms = -1})

/* Refuses a cause that does not exist: it is a typing error, and would select nothing. */
cli_take row_filter_check_cause;

bool row_filter_is_set(const struct row_filter *filter);

/* Returns whether the row passes. time: the member of the row that ages are counted from. */
bool row_filter_passes(const struct row_filter *filter, const struct redisReply *row,
                       const char *time, int64_t now_ms);

#endif
