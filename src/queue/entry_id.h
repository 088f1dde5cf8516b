/*
 * Ids of stream entries: MS-NUMBER. Later entries have higher ids.
 */
#ifndef LEAT_QUEUE_ENTRY_ID_H
#define LEAT_QUEUE_ENTRY_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry_id {
    uint64_t ms, number;
};

/* Returns false if the text is not an id. */
bool entry_parse(const char *text, struct entry_id *id);

/* Returns true if the text has the form of a task's id. Its second half may exceed 64 bits, so it
 * need not be the id of an entry. */
bool entry_is_task(const char *text);

/* Returns true if the text may be the label of a task. It may be a task's id, too, if a producer
 * has chosen a short one. */
bool entry_may_be_label(const char *text);

/* Returns a negative number, 0 or a positive number, as strcmp does. */
int entry_compare(const struct entry_id *a, const struct entry_id *b);

/* Writes the id just before this one, which is the cursor of a list that begins with this one.
 * Returns false if there is none. */
bool entry_before(const char *id, char *before, size_t size);

#endif
