/* Computes hash slots of a Redis Cluster. */
#include "base/hash_slot.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* CRC16 as in XMODEM: polynomial 0x1021, initial value 0. */
static unsigned checksum(const char *data, size_t size)
{
    unsigned crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned)(uint8_t)data[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 0x8000U ? crc << 1 ^ 0x1021U : crc << 1) & 0xFFFFU;
        }
    }
    return crc;
}

/* Returns the tag and its size, or NULL if there is none. */
static const char *find_tag(const char *key, size_t *size)
{
    const char *open = strchr(key, '{');
    const char *shut = open ? strchr(open, '}') : NULL;
    if (!shut || shut == open + 1) {
        return NULL;
    }
    *size = (size_t)(shut - open) - 1;
    return open + 1;
}

bool hash_slot_is_tagged(const char *key)
{
    size_t size = 0;
    return find_tag(key, &size);
}

int hash_slot_of(const char *key)
{
    size_t size = strlen(key);
    const char *tag = find_tag(key, &size);
    return (int)(checksum(tag ? tag : key, size) % HASH_SLOTS);
}
