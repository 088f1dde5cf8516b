/*
 * Ids of stream entries: MS-NUMBER, and they only grow.
 */
#ifndef LEAT_CLI_LIB_ENTRY_ID_H
#define LEAT_CLI_LIB_ENTRY_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry_id {
    uint64_t ms, number;
};

/* False where the text is no such id. */
bool entry_parse(const char *text, struct entry_id *id);

/* Negative, 0 or positive. */
int entry_compare(const struct entry_id *a, const struct entry_id *b);

/* The id just before this one, behind which lists go on; false where there is none. */
bool entry_before(const char *id, char *before, size_t size);

#endif
