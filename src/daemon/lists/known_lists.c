/*
 * The table of known producer lists: a search tree by name, and a linked list by age that bounds
 * it.
 */
#include "daemon/lists/known_lists.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* The number of oldest lists that are tried before there is no room. */
#define TRIES 64

static int compare(const void *left, const void *right)
{
    return bytes_compare(((const struct list *)left)->name, ((const struct list *)right)->name);
}

struct list *known_lists_find(const struct known_lists *known, struct bytes name)
{
    const struct list wanted = {.name = name};
    struct list *const *found = tfind(&wanted, &known->root, compare);
    return found ? *found : NULL;
}

void known_lists_init(struct known_lists *known)
{
    *known = (struct known_lists){0};
    TAILQ_INIT(&known->ages);
}

void known_lists_touch(struct known_lists *known, struct list *list)
{
    TAILQ_REMOVE(&known->ages, list, age);
    TAILQ_INSERT_HEAD(&known->ages, list, age);
}

/* ---- adding and forgetting ---- */

static void forget(struct known_lists *known, struct list *list)
{
    (void)tdelete(list, &known->root, compare); /* cannot fail: the list is in the tree */
    TAILQ_REMOVE(&known->ages, list, age);
    known->count--;
    known->pinned -= list->pinned;
    free((char *)list->name.data);
    free(list);
}

static bool can_forget(const struct list *list)
{
    return !list->pinned && !list->queued && !list->busy && !timer_runs(&list->wait);
}

static bool make_room(struct known_lists *known)
{
    struct list *list = TAILQ_LAST(&known->ages, list_ages);
    for (int i = 0; i < TRIES && list; i++, list = TAILQ_PREV(list, list_ages, age)) {
        if (can_forget(list)) {
            forget(known, list);
            return true;
        }
    }
    return false;
}

struct list *known_lists_add(struct known_lists *known, struct bytes name, bool pinned)
{
    if (!pinned && known->count - known->pinned >= KNOWN_MAX && !make_room(known)) {
        return NULL;
    }
    struct list *list = calloc(1, sizeof *list);
    char *copy = malloc(name.size + 1);
    if (!list || !copy) {
        goto fail;
    }
    memcpy(copy, name.data, name.size);
    copy[name.size] = '\0';
    list->name = (struct bytes){copy, name.size};
    list->pinned = pinned;
    if (!tsearch(list, &known->root, compare)) {
        goto fail;
    }
    TAILQ_INSERT_HEAD(&known->ages, list, age);
    known->count++;
    known->pinned += pinned;
    return list;

fail:
    free(list);
    free(copy);
    return NULL;
}

void known_lists_clear(struct known_lists *known)
{
    while (!TAILQ_EMPTY(&known->ages)) {
        forget(known, TAILQ_FIRST(&known->ages));
    }
}
