/*
 * "Did you mean …": how far two words are apart.
 */
#ifndef LEAT_CONFIG_SUGGEST_H
#define LEAT_CONFIG_SUGGEST_H

#include <stddef.h>

/* Letters to insert, delete, replace or swap with their neighbour to make one word into the other,
 * whatever their case and with - as _. SIZE_MAX where a word has over 32 letters. */
size_t suggest_distance(const char *a, const char *b);

/* How bad a guess it is that somebody who wrote the word meant the candidate; the least of several
 * is the one to suggest. SIZE_MAX where it is not worth suggesting. */
size_t suggest_badness(const char *word, const char *candidate);

#endif
