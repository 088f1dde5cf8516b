/* Lists of servers: HOST:PORT or [IPv6]:PORT. */
#include "config/types/addresses.h"

#include <stdlib.h>
#include <string.h>

#include "config/types/strings.h"

enum { MOST = 64, PORT_MOST = 65535, PORT_DIGITS = 5 };

static int parse_port(const char *text, int64_t *port)
{
    size_t length = strlen(text);

    if (length < 1 || length > PORT_DIGITS || strspn(text, "0123456789") != length) {
        return -1;
    }
    *port = strtol(text, NULL, 10);
    return *port < 1 || *port > PORT_MOST ? -1 : 0;
}

int addresses_split(const char *text, char *host, int64_t *port)
{
    const char *colon = strrchr(text, ':'), *start = text, *end = colon;

    if (!colon) {
        return -1;
    }
    if (*text == '[') {
        start++;
        end--;
        if (end <= start || *end != ']') {
            return -1;
        }
    } else if (memchr(text, ':', (size_t)(colon - text))) {
        return -1; /* an IPv6 address requires brackets */
    }
    if (end == start || end - start >= ADDRESSES_HOST_SIZE) {
        return -1;
    }
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    return parse_port(colon + 1, port);
}

static int add(char ***list, const char *text, size_t size, struct buffer *why)
{
    char host[ADDRESSES_HOST_SIZE];
    size_t count = 0;
    int64_t port;

    for (; *list && (*list)[count]; count++) {
        if (strlen((*list)[count]) == size && strncmp((*list)[count], text, size) == 0) {
            return strings_refuse(why, (*list)[count], "is listed twice; remove one of them");
        }
    }
    if (count == MOST) {
        return strings_refuse(why, (*list)[MOST - 1],
                              "is the last of at most 64 addresses; remove the others");
    }
    if (strings_append(list, text, size) != 0) {
        why->failed = true;
        return -1;
    }
    if (addresses_split((*list)[count], host, &port) != 0) {
        return strings_refuse(why, (*list)[count],
                              "is not an address; write it HOST:PORT, or [IPv6]:PORT");
    }
    return 0;
}

int addresses_set(char ***list, const char *text, struct buffer *why)
{
    static const char between[] = ", \t";

    if (strings_check(TABLE_ADDRESSES, text, why) != 0) {
        return -1;
    }
    for (text += strspn(text, between); *text != '\0'; text += strspn(text, between)) {
        size_t size = strcspn(text, between);

        if (add(list, text, size, why) != 0) {
            return -1;
        }
        text += size;
    }
    return !*list ? strings_refuse(why, "", "contains no address; write HOST:PORT") : 0;
}
