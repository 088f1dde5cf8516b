#include "exec/places.h"

#include <stdlib.h>

enum { BITS = 64 };

static int add_word(struct places *places)
{
    uint64_t *taken = reallocarray(places->taken, places->words + 1, sizeof *taken);
    if (!taken) {
        return -1;
    }
    taken[places->words++] = 0;
    places->taken = taken;
    return 0;
}

int places_take(struct places *places, size_t *place)
{
    while (places->first < places->words && places->taken[places->first] == UINT64_MAX) {
        places->first++;
    }
    if (places->first == places->words && add_word(places)) {
        return -1;
    }
    uint64_t *word = &places->taken[places->first];
    size_t bit = (size_t)__builtin_ctzll(~*word);
    *word |= UINT64_C(1) << bit;
    *place = places->first * BITS + bit;
    return 0;
}

void places_release(struct places *places, size_t place)
{
    size_t word = place / BITS;
    places->taken[word] &= ~(UINT64_C(1) << place % BITS);
    places->first = word < places->first ? word : places->first;
}

void places_free(struct places *places)
{
    free(places->taken);
    *places = (struct places){0};
}
