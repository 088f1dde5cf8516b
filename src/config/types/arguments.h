/*
 * Parses the arguments of a listed command. White space separates words. Text in single or double
 * quotes belongs to one word, and the quotes are removed; a backslash is an ordinary character.
 * {FIELD} is the value of a field of the task, {FIELD=TEXT} is TEXT if the task has no such field;
 * {{ and }} are braces. A value always stays within one word.
 */
#ifndef LEAT_CONFIG_TYPES_ARGUMENTS_H
#define LEAT_CONFIG_TYPES_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

struct argument_piece {
    char *text;     /* owned; literal text, or the name of a field */
    char *fallback; /* owned; used if the task lacks the field; may be NULL */
    bool is_field;
};

/* One word, as the pieces that it is joined from. */
struct argument {
    struct argument_piece *pieces; /* owned */
    size_t count;                  /* 0: the empty word */
};

struct arguments {
    struct argument *words; /* owned */
    size_t count;
};

/* Returns 0, or -1: why then says what is wrong and what to do, or why->failed is set if memory ran
 * out. In either case the caller frees *arguments. */
int arguments_parse(const char *text, struct arguments *arguments, struct buffer *why);
void arguments_free(struct arguments *arguments);

#endif
