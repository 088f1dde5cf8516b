/*
 * Tokens that a call names.
 */
#ifndef LEAT_DAEMON_TOKENS_H
#define LEAT_DAEMON_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

/* The strings belong to whoever holds the task. */
struct token_list {
    const char **tokens; /* owned by the list */
    size_t count, capacity;
    bool failed; /* no memory: the list is not whole and must not be sent */
};

void token_list_add(struct token_list *list, const char *token);
void token_list_free(struct token_list *list);

#endif
