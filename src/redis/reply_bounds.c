/* Counts the elements of an array, and the arrays around it. */
#include "redis/reply_bounds.h"

enum { MOST_ELEMENTS = 4 * 1024 * 1024, MOST_DEPTH = 9 };

bool reply_bounds_allow(const redisReadTask *task, reply_bounds_count elements)
{
    int depth = 1;
    for (const redisReadTask *above = task->parent; above && depth <= MOST_DEPTH;
         above = above->parent) {
        depth++;
    }
    return elements <= MOST_ELEMENTS && depth <= MOST_DEPTH;
}
