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

/* All of them, in any order: the one behind child, or the first for NULL; NULL: no more. None is
 * added or taken out in between. */
struct child *children_next(const struct children *children, const struct child *child);

void children_free(struct children *children);

#endif
