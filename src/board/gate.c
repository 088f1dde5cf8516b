/*
 * Which requests the board answers.
 */
#include "board/gate.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define ADDRESS_SIZE 64 /* more than any address */

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits <= 5 && text[digits] == '\0';
}

/* "[::1]:80" */
static bool is_address_6(const char *host)
{
    const char *end = strchr(host, ']');
    char address[ADDRESS_SIZE];
    struct in6_addr parsed;
    size_t size = end ? (size_t)(end - host - 1) : 0;

    if (!end || size >= sizeof address ||
        (end[1] != '\0' && (end[1] != ':' || !is_port(end + 2)))) {
        return false;
    }
    memcpy(address, host + 1, size);
    address[size] = '\0';
    return inet_pton(AF_INET6, address, &parsed) == 1;
}

bool gate_allows_host(const char *host)
{
    size_t size = host ? strcspn(host, ":") : 0;
    char name[ADDRESS_SIZE];
    struct in_addr parsed;

    if (!host) {
        return false;
    }
    if (*host == '[') {
        return is_address_6(host);
    }
    if (size >= sizeof name || (host[size] == ':' && !is_port(host + size + 1))) {
        return false;
    }
    memcpy(name, host, size);
    name[size] = '\0';
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &parsed) == 1;
}

bool gate_allows_token(const char *authorization, const char *token)
{
    static const char scheme[] = "Bearer ";
    const char *given;
    size_t size = strlen(token);
    unsigned char difference = 0;

    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0) {
        return false;
    }
    given = authorization + sizeof scheme - 1;
    if (strlen(given) != size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        difference |= (unsigned char)(given[i] ^ token[i]);
    }
    return difference == 0;
}
