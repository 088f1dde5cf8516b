/*
 * The children that have a process, by its id.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_TABLE_H
#define LEAT_EXEC_ATTEMPT_CHILD_TABLE_H

#include <stddef.h>
#include <sys/types.h>

struct child;

/* All zero until children_init. */
struct child_table {
    struct child **buckets; /* owned, let go by children_free */
    size_t bucket_count, count;
};

/* Returns 0, or -1 without memory. */
int child_table_init(struct child_table *children);

/* Not owned. */
void child_table_add(struct child_table *children, struct child *child);

/* The child with that process, or NULL; children_take takes it out. */
struct child *child_table_find(const struct child_table *children, pid_t pid);
struct child *child_table_take(struct child_table *children, pid_t pid);

/* Takes it out if it is there. */
void child_table_remove(struct child_table *children, struct child *child);

/* All of them, in any order: the one behind child, or the first for NULL; NULL: no more. None is
 * added or taken out in between. */
struct child *child_table_next(const struct child_table *children, const struct child *child);

void child_table_free(struct child_table *children);

#endif
