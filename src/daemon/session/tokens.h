/*
 * Tokens: those that a call names, and those that an answer names.
 */
#ifndef LEAT_DAEMON_SESSION_TOKENS_H
#define LEAT_DAEMON_SESSION_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

struct redisReply;

/* The strings belong to whoever holds the task. */
struct token_list {
    const char **tokens; /* owned by the list */
    size_t count, capacity;
    bool failed; /* no memory: the list is not whole and must not be sent */
};

void token_list_add(struct token_list *list, const char *token);
void token_list_free(struct token_list *list);

/* Those of an answer, to look them up. */
struct token_set {
    const char **tokens; /* in order; the strings are the reply's */
    size_t count;
    bool failed; /* no memory: nothing is known of it, and it holds none */
};

/* An array of texts, which must outlive the set. */
struct token_set token_set_of(const struct redisReply *texts);
bool token_set_has(const struct token_set *set, const char *token);
void token_set_free(struct token_set *set);

#endif
