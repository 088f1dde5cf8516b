/*
 * Lists and sets of tokens: those that a call names, and those that a reply names.
 */
#ifndef LEAT_DAEMON_SESSION_TOKENS_H
#define LEAT_DAEMON_SESSION_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

struct redisReply;

/* The strings belong to the owner of the task. */
struct token_list {
    const char **tokens; /* owned by the list */
    size_t count;
    bool failed; /* out of memory: the list is incomplete and must not be sent */
};

void token_list_add(struct token_list *list, const char *token);
void token_list_free(struct token_list *list);

/* The tokens of a reply, for lookups. */
struct token_set {
    const char **tokens; /* sorted; the strings are the reply's */
    size_t count;
    bool failed; /* out of memory: the set is empty */
};

/* texts: an array of strings, which must outlive the set. */
struct token_set token_set_of(const struct redisReply *texts);
bool token_set_has(const struct token_set *set, const char *token);
void token_set_free(struct token_set *set);

#endif
