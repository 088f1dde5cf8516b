/*
 * A hash table with chains that grows with the number of children.
 */
#include "exec/attempt/child_table.h"

#include <stdlib.h>

#include "exec/attempt/child_state.h"

enum { FIRST_BUCKETS = 64 }; /* all sizes are powers of two */

static struct child **bucket_of(const struct child_table *children, pid_t pid)
{
    return &children->buckets[(size_t)pid & (children->bucket_count - 1)];
}

int child_table_init(struct child_table *children)
{
    children->buckets = calloc(FIRST_BUCKETS, sizeof(struct child *));
    children->bucket_count = FIRST_BUCKETS;
    return children->buckets ? 0 : -1;
}

/* Doubles the buckets. Without memory the table stays as it is, and its chains grow. */
static void grow(struct child_table *children)
{
    struct child **former = children->buckets;
    size_t former_count = children->bucket_count;
    struct child **buckets = calloc(former_count * 2, sizeof(struct child *));
    if (!buckets) {
        return;
    }
    children->buckets = buckets;
    children->bucket_count = former_count * 2;
    for (size_t i = 0; i < former_count; i++) {
        for (struct child *child = former[i], *next; child; child = next) {
            next = child->next_in_bucket;
            struct child **bucket = bucket_of(children, child->pid);
            child->next_in_bucket = *bucket;
            *bucket = child;
        }
    }
    free(former);
}

void child_table_add(struct child_table *children, struct child *child)
{
    if (++children->count > children->bucket_count) {
        grow(children);
    }
    struct child **bucket = bucket_of(children, child->pid);
    child->next_in_bucket = *bucket;
    *bucket = child;
}

/* Returns the pointer to the child with that pid, or to the end of its chain. */
static struct child **link_of(const struct child_table *children, pid_t pid)
{
    struct child **link = bucket_of(children, pid);
    while (*link && (*link)->pid != pid) {
        link = &(*link)->next_in_bucket;
    }
    return link;
}

struct child *child_table_find(const struct child_table *children, pid_t pid)
{
    return *link_of(children, pid);
}

struct child *child_table_take(struct child_table *children, pid_t pid)
{
    struct child **link = link_of(children, pid);
    struct child *child = *link;
    if (child) {
        *link = child->next_in_bucket;
        children->count--;
    }
    return child;
}

void child_table_remove(struct child_table *children, struct child *child)
{
    struct child **link = bucket_of(children, child->pid);
    while (*link && *link != child) {
        link = &(*link)->next_in_bucket;
    }
    if (*link) {
        *link = child->next_in_bucket;
        children->count--;
    }
}

struct child *child_table_next(const struct child_table *children, const struct child *child)
{
    struct child *next = child ? child->next_in_bucket : NULL;
    struct child **bucket = child ? bucket_of(children, child->pid) + 1 : children->buckets;
    for (; !next && bucket < children->buckets + children->bucket_count; bucket++) {
        next = *bucket;
    }
    return next;
}

void child_table_free(struct child_table *children)
{
    free(children->buckets);
    children->buckets = NULL;
}
