/*
 * Lists of tokens for calls, and sorted sets of tokens from replies.
 */
#include "daemon/session/tokens.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void token_list_add(struct token_list *list, const char *token)
{
    const char **tokens = array_grow(list->tokens, list->count, sizeof *tokens);
    if (!tokens) {
        list->failed = true;
        return;
    }
    list->tokens = tokens;
    list->tokens[list->count++] = token;
}

void token_list_free(struct token_list *list)
{
    free(list->tokens);
    *list = (struct token_list){0};
}

static int compare_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

struct token_set token_set_of(const struct redisReply *texts)
{
    struct token_set set = {0};
    if (texts->elements == 0) {
        return set;
    }
    set.tokens = calloc(texts->elements, sizeof *set.tokens);
    if (!set.tokens) {
        set.failed = true;
        return set;
    }
    for (size_t i = 0; i < texts->elements; i++) {
        set.tokens[i] = texts->element[i]->str ? texts->element[i]->str : "";
    }
    set.count = texts->elements;
    qsort(set.tokens, set.count, sizeof *set.tokens, compare_text);
    return set;
}

bool token_set_has(const struct token_set *set, const char *token)
{
    return set->count > 0 &&
           bsearch(&token, set->tokens, set->count, sizeof *set->tokens, compare_text);
}

void token_set_free(struct token_set *set)
{
    free(set->tokens);
    *set = (struct token_set){0};
}
