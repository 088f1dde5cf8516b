/*
 * The arguments of a listed command, as people write them. Words stand with white space between;
 * what is in single or double quotes belongs to one word, and the quotes are taken off; a backslash
 * is a character like others. {FIELD} stands for the value of a task's field, {FIELD=TEXT} for TEXT
 * where the task has no such field; {{ and }} are braces. No value ever becomes more than one word,
 * or less.
 */
#ifndef LEAT_CONFIG_TYPES_ARGUMENTS_H
#define LEAT_CONFIG_TYPES_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

struct argument_piece {
    char *text;     /* owned; what stands there, or a field's name */
    char *fallback; /* owned; of a field: where the task lacks it, or NULL */
    bool is_field;
};

/* One word. */
struct argument {
    struct argument_piece *pieces; /* owned */
    size_t count;                  /* 0: the empty word */
};

struct arguments {
    struct argument *words; /* owned */
    size_t count;
};

/* Returns 0, or -1: why then says what is wrong and what to do, or is failed for want of memory.
 * *arguments is the caller's to free in any case. */
int arguments_parse(const char *text, struct arguments *arguments, struct buffer *why);
void arguments_free(struct arguments *arguments);

#endif
