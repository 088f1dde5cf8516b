/*
 * Packs the record of an ended task as MessagePack, which Redis's Lua reads.
 */
#include "queue/history_record.h"

#include <stdint.h>
#include <string.h>

enum { FIXED_LIST = 0x90, FIXED_TEXT = 0xa0, TEXT_8 = 0xd9, TEXT_16 = 0xda, FIXED_MOST = 31 };
enum { LONGEST_HEADER = 3 };

_Static_assert(HISTORY_ITEMS < 16, "a longer list has another header");

/* Writes the header of a text of up to 64 KiB. Returns its size. */
static size_t pack_header(size_t size, uint8_t header[LONGEST_HEADER])
{
    if (size <= FIXED_MOST) {
        header[0] = (uint8_t)(FIXED_TEXT | size);
        return 1;
    }
    if (size <= UINT8_MAX) {
        header[0] = TEXT_8;
        header[1] = (uint8_t)size;
        return 2;
    }
    header[0] = TEXT_16;
    header[1] = (uint8_t)(size >> 8);
    header[2] = (uint8_t)size;
    return 3;
}

size_t history_record_pack(const struct bytes items[HISTORY_ITEMS], char *out)
{
    size_t used = 1;

    out[0] = (char)(uint8_t)(FIXED_LIST | HISTORY_ITEMS);
    for (size_t i = 0; i < HISTORY_ITEMS; i++) {
        uint8_t header[LONGEST_HEADER];
        size_t room = QUEUE_HISTORY_RECORD - used -
                      (HISTORY_ITEMS - i - 1); /* the others have a header each */
        size_t size = items[i].size + LONGEST_HEADER <= room ? items[i].size : 0;
        size_t head = pack_header(size, header);
        memcpy(out + used, header, head);
        if (size > 0) {
            memcpy(out + used + head, items[i].data, size);
        }
        used += head + size;
    }
    return used;
}
