/*
 * A hash table of children, by the pid of their process.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_TABLE_H
#define LEAT_EXEC_ATTEMPT_CHILD_TABLE_H

#include <stddef.h>
#include <sys/types.h>

struct child;

/* Zeroed until child_table_init. */
struct child_table {
    struct child **buckets; /* owned, freed by child_table_free */
    size_t bucket_count, count;
};

/* Returns 0, or -1 without memory. */
int child_table_init(struct child_table *children);

/* Adds a child, which the table does not own. */
void child_table_add(struct child_table *children, struct child *child);

/* Return the child with that pid, or NULL; child_table_take removes it from the table. */
struct child *child_table_find(const struct child_table *children, pid_t pid);
struct child *child_table_take(struct child_table *children, pid_t pid);

/* Removes the child if it is in the table. */
void child_table_remove(struct child_table *children, struct child *child);

/* Walks through all children in any order: returns the one after `child`, the first for NULL, or
 * NULL at the end. The table must not change meanwhile. */
struct child *child_table_next(const struct child_table *children, const struct child *child);

void child_table_free(struct child_table *children);

#endif
