/*
 * A Bloom filter for names.
 */
#include "cli/doctor/seen.h"

#include <stdint.h>
#include <stdlib.h>

#define SEEN_BITS                                                                                  \
    (UINT64_C(1) << 27) /* 16 MiB of address space; only pages that are used take memory */
#define WORD_BITS 64
#define PROBES 6

struct seen {
    uint64_t words[SEEN_BITS / WORD_BITS];
};

struct seen *seen_new(void)
{
    return calloc(1, sizeof(struct seen));
}

void seen_free(struct seen *seen)
{
    free(seen);
}

/* FNV-1a, then the finalizer of MurmurHash3, so that all bits depend on all bytes. */
static uint64_t hash(const void *name, size_t size)
{
    const unsigned char *bytes = name;
    uint64_t value = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++) {
        value = (value ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    value = (value ^ value >> 33) * UINT64_C(0xff51afd7ed558ccd);
    value = (value ^ value >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return value ^ value >> 33;
}

/* The bit of one probe, computed from the two halves of the hash. */
static uint64_t bit_of(uint64_t value, uint64_t probe)
{
    return (value + probe * (value >> 32 | 1)) % SEEN_BITS;
}

void seen_add(struct seen *seen, const void *name, size_t size)
{
    uint64_t value = hash(name, size);

    for (uint64_t probe = 0; probe < PROBES; probe++) {
        uint64_t bit = bit_of(value, probe);
        seen->words[bit / WORD_BITS] |= UINT64_C(1) << bit % WORD_BITS;
    }
}

bool seen_has(const struct seen *seen, const void *name, size_t size)
{
    uint64_t value = hash(name, size);

    for (uint64_t probe = 0; probe < PROBES; probe++) {
        uint64_t bit = bit_of(value, probe);
        if (!(seen->words[bit / WORD_BITS] >> bit % WORD_BITS & 1)) {
            return false;
        }
    }
    return true;
}
