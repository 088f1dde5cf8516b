#include "daemon/tokens.h"

#include <stdlib.h>

void token_list_add(struct token_list *list, const char *token)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        const char **grown = reallocarray(list->tokens, capacity, sizeof *grown);
        if (!grown) {
            list->failed = true;
            return;
        }
        list->tokens = grown;
        list->capacity = capacity;
    }
    list->tokens[list->count++] = token;
}

void token_list_free(struct token_list *list)
{
    free(list->tokens);
    *list = (struct token_list){0};
}
