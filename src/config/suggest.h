/*
 * Finds the word that was probably meant ("did you mean …?").
 */
#ifndef LEAT_CONFIG_SUGGEST_H
#define LEAT_CONFIG_SUGGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* The number of letters to insert, delete, replace or swap with a neighbour to turn one word into
 * the other. Case does not count, and - equals _. SIZE_MAX if a word has more than 32 letters. */
size_t suggest_distance(const char *a, const char *b);

/* How unlikely it is that somebody who wrote word meant candidate. Suggest the candidate with the
 * lowest result. SIZE_MAX: do not suggest it. */
size_t suggest_badness(const char *word, const char *candidate);

/* The best of several candidates. */
struct suggestion {
    size_t badness;
    const char *word; /* NULL: none is similar */
};
#define SUGGESTION_NONE ((struct suggestion){.badness = SIZE_MAX})

/* Takes the candidate if it is better than those before it. */
void suggest_offer(struct suggestion *best, const char *word, const char *candidate);

/* Appends "; did you mean WORD?", or nothing. */
void suggest_append(const struct suggestion *best, struct buffer *why);

#endif
