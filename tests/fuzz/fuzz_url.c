/* Goal: any bytes as the URL of a server give an address that keeps the rules of the file's
 * keys, or a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/types/addresses.h"
#include "config/types/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_redis redis = {0};
    struct buffer why = BUFFER_INIT;
    char *text = strndup((const char *)data, size);

    if (text && url_parse(text, &redis, &why) == 0) {
        check(why.size == 0);
        check((!redis.host) != (!redis.socket));
        check(!redis.host || strlen(redis.host) < ADDRESSES_HOST_SIZE);
        check(!redis.socket || *redis.socket == '/');
        check(!redis.user || *redis.user != '\0');
        check(!redis.password || *redis.password != '\0');
        check(redis.port >= 1 && redis.port <= 65535);
        check(redis.db >= 0 && redis.db <= 65535);
    } else {
        check(!text || why.size > 0);
    }
    url_clear(&redis);
    buffer_free(&why);
    free(text);
    return 0;
}
