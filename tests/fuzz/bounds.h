/* hiredis allocates an array as long as its header says, up to 16 GiB. With a memory limit that
 * is no finding, so such inputs are skipped. */
#ifndef LEAT_FUZZ_BOUNDS_H
#define LEAT_FUZZ_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if no '*' is followed by more than five digits, signs and zeroes included. */
static inline bool bounded_arrays(const uint8_t *data, size_t size)
{
    enum { DIGITS = 5 };
    for (size_t i = 0; i < size; i++) {
        size_t length = 0;
        while (data[i] == '*' && i + 1 + length < size && data[i + 1 + length] != '\r') {
            length++;
        }
        if (length > DIGITS) {
            return false;
        }
    }
    return true;
}

#endif
