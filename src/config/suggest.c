/* Finds the word that was probably meant, by edit distance. */
#include "config/suggest.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 32 };

static char fold(char letter)
{
    if (letter == '-') {
        return '_';
    }
    return (char)(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t suggest_distance(const char *a, const char *b)
{
    size_t rows[LONGEST + 1][LONGEST + 1];
    size_t a_length = strlen(a), b_length = strlen(b);

    if (a_length > LONGEST || b_length > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= a_length; i++) {
        rows[i][0] = i;
    }
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }

    /* rows[i][j]: the distance between the first i letters of a and the first j of b */
    for (size_t i = 1; i <= a_length; i++) {
        for (size_t j = 1; j <= b_length; j++) {
            char x = fold(a[i - 1]), y = fold(b[j - 1]);
            size_t replaced = rows[i - 1][j - 1] + (x == y ? 0 : 1);

            rows[i][j] = least(replaced, least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && x == fold(b[j - 2]) && y == fold(a[i - 2])) {
                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
            }
        }
    }
    return rows[a_length][b_length];
}

/* The largest distance at which a candidate is suggested. */
static size_t limit_of(const char *word)
{
    size_t length = strlen(word);

    return length < 4 ? 1 : length < 6 ? 2 : length / 3 + 1;
}

size_t suggest_badness(const char *word, const char *candidate)
{
    size_t distance = suggest_distance(word, candidate), common = 0;

    if (distance > limit_of(word)) {
        return SIZE_MAX;
    }

    /* among candidates at the same distance, prefer the longest common beginning */
    while (word[common] != '\0' && fold(word[common]) == fold(candidate[common])) {
        common++;
    }
    return distance * (LONGEST + 1) + LONGEST - common;
}

void suggest_offer(struct suggestion *best, const char *word, const char *candidate)
{
    size_t badness = suggest_badness(word, candidate);

    if (badness < best->badness) {
        *best = (struct suggestion){badness, candidate};
    }
}

void suggest_append(const struct suggestion *best, struct buffer *why)
{
    if (best->word) {
        /* a failure sets why->failed, which the caller checks */
        (void)buffer_printf(why, "; did you mean %s?", best->word);
    }
}
