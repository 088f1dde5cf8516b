/*
 * The children that have a process, by its id.
 */
#ifndef LEAT_EXEC_CHILDREN_H
#define LEAT_EXEC_CHILDREN_H

#include <stddef.h>
#include <sys/types.h>

struct child;

/* All zero until children_init. */
struct children {
    struct child **buckets; /* owned, let go by children_free */
    size_t bucket_count, count;
};

/* Returns 0, or -1 without memory. */
int children_init(struct children *children);

/* Not owned. */
void children_add(struct children *children, struct child *child);

/* The child with that process, or NULL; children_take takes it out. */
struct child *children_find(const struct children *children, pid_t pid);
struct child *children_take(struct children *children, pid_t pid);

/* Takes it out if it is there. */
void children_remove(struct children *children, struct child *child);

void children_free(struct children *children);

#endif
