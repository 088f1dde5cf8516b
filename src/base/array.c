/* Arrays that grow by one element at a time. */
#include "base/array.h"

#include <stdlib.h>

enum { SMALLEST = 8 };

void *array_grow(void *array, size_t count, size_t size)
{
    /* there is room for the next power of two */
    if (count == 0) {
        return reallocarray(array, SMALLEST, size);
    }
    return count >= SMALLEST && (count & (count - 1)) == 0 ? reallocarray(array, count * 2, size)
                                                           : array;
}
