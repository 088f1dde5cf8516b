/*
 * Values that are text, and lists of variables and words. Members are wiped before they are freed,
 * since any of them may contain a secret.
 */
#ifndef LEAT_CONFIG_TYPES_STRINGS_H
#define LEAT_CONFIG_TYPES_STRINGS_H

#include "base/buffer.h"
#include "config/table.h"

/* Returns 0 if text is valid for that type, or -1 with the reason in why. */
int strings_check(enum table_type type, const char *text, struct buffer *why);

/* Writes "TEXT" REASON into why. Returns -1. */
int strings_refuse(struct buffer *why, const char *text, const char *reason);

/* Replaces *text by a copy of source, which may be NULL. Returns 0, or -1 if memory ran out. */
int strings_replace(char **text, const char *source);

/* Adds NAME=VALUE to the NULL-terminated list (NULL if empty). Returns 0 or -1, like value_set. */
int strings_add_variable(char ***list, const char *text, struct buffer *why);

/* Appends the words of text to *list. Returns 0 or -1, like value_set. */
int strings_set_words(char ***list, const char *text, struct buffer *why);

/* Appends a copy to the NULL-terminated list (NULL if empty). Returns 0, or -1 if memory ran
 * out. */
int strings_append(char ***list, const char *text, size_t size);

/* Returns the entry of the list (NULL if empty) that is the name, or begins with the name and the
 * separator; or NULL. */
const char *strings_find(char *const *list, const char *name, size_t length, char separator);

/* Replaces *list by a copy of source, which may be NULL. Returns 0, or -1 if memory ran out. */
int strings_copy_list(char ***list, char *const *source);

/* Wipe and free the text or list, and set it to NULL. */
void strings_free(char **text);
void strings_free_list(char ***list);

#endif
