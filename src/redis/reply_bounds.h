/*
 * Bounds what a server can make hiredis do with some bytes. hiredis allocates all elements that a
 * server announces, and visits each of them when it frees the reply, by recursion: gigabytes and
 * minutes for *2147483647, and since version 1.1 a stack that overflows for arrays in arrays.
 */
#ifndef LEAT_REDIS_REPLY_BOUNDS_H
#define LEAT_REDIS_REPLY_BOUNDS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

/* how hiredis counts elements */
#if HIREDIS_MAJOR >= 1
typedef size_t reply_bounds_count;
#else
typedef int reply_bounds_count;
#endif

#define REPLY_BOUNDS_WHY "a reply of too many elements"

/* Whether hiredis shall make this array of a reply. No reply of a queue is refused: an entry has at
 * most a million elements, since Redis takes no larger command. */
bool reply_bounds_allow(const redisReadTask *task, reply_bounds_count elements);

#endif
