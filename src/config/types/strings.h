/*
 * Values that are text: what each type allows, and lists of variables and of words. Members are
 * wiped before they are freed, since any of them may hold a secret.
 */
#ifndef LEAT_CONFIG_TYPES_STRINGS_H
#define LEAT_CONFIG_TYPES_STRINGS_H

#include "base/buffer.h"
#include "config/table.h"

/* Returns 0 where text is good for that type, or -1 with the reason in why. */
int strings_check(enum table_type type, const char *text, struct buffer *why);

/* Writes into why that the text is wrong: "TEXT" REASON. Returns -1. */
int strings_refuse(struct buffer *why, const char *text, const char *reason);

/* Makes *text a copy of source (which may be NULL). Returns 0, or -1 without memory. */
int strings_replace(char **text, const char *source);

/* Adds NAME=VALUE to the NULL-terminated list (NULL while empty). Returns 0, or -1 as value_set. */
int strings_add_variable(char ***list, const char *text, struct buffer *why);

/* Makes *list the words of text. Returns 0, or -1 as value_set. */
int strings_set_words(char ***list, const char *text, struct buffer *why);

/* Appends a copy to the NULL-terminated list (NULL while empty). Returns 0, or -1 without memory.
 */
int strings_append(char ***list, const char *text, size_t size);

/* Makes *list a copy of source (which may be NULL). Returns 0, or -1 without memory. */
int strings_copy_list(char ***list, char *const *source);

/* Wipes, frees and makes NULL. */
void strings_free(char **text);
void strings_free_list(char ***list);

#endif
