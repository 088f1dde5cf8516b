/*
 * The socket that the board listens at.
 */
#include "board/listener.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/process/descriptor.h"

#define BACKLOG 64
#define UNIX_PREFIX "unix:"

static int parse_path(const char *path, struct listener_address *address)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    if (!*path || strlen(path) >= sizeof address->path) {
        return -1;
    }
    memcpy(address->path, path, strlen(path) + 1);
    memcpy(name.sun_path, path, strlen(path));
    memcpy(&address->address, &name, sizeof name);
    address->size = sizeof name;
    return 0;
}

int listener_parse(const char *text, struct listener_address *address)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char host[256];
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    bool bracketed = size > 1 && text[0] == '[' && text[size - 1] == ']';

    *address = (struct listener_address){0};
    if (strlen(text) >= sizeof address->text) {
        return -1;
    }
    memcpy(address->text, text, strlen(text) + 1);
    if (strncmp(text, UNIX_PREFIX, sizeof UNIX_PREFIX - 1) == 0) {
        return parse_path(text + sizeof UNIX_PREFIX - 1, address);
    }
    /* getaddrinfo takes a larger port, and drops its upper bits */
    if (size == 0 || colon[1] == '\0' || strtoul(colon + 1, NULL, 10) > UINT16_MAX) {
        return -1;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)(bracketed ? size - 2 : size), text + bracketed);
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        return -1;
    }
    memcpy(&address->address, found->ai_addr, found->ai_addrlen);
    address->size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

/* A socket that is left over from a board that was killed. */
static void remove_stale(const struct listener_address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address->address, address->size) != 0 &&
        errno == ECONNREFUSED) {
        listener_remove(address);
    }
    descriptor_close(&fd);
}

void listener_remove(const struct listener_address *address)
{
    if (*address->path) {
        (void)unlink(address->path); /* one that is left is replaced at the next start */
    }
}

/* Names the port that the system chose. */
static void name_port(int fd, struct listener_address *address)
{
    char *colon = strrchr(address->text, ':'), port[NI_MAXSERV];

    address->size = sizeof address->address;
    if (colon && strcmp(colon, ":0") == 0 &&
        getsockname(fd, (struct sockaddr *)&address->address, &address->size) == 0 &&
        getnameinfo((const struct sockaddr *)&address->address, address->size, NULL, 0, port,
                    sizeof port, NI_NUMERICSERV) == 0) {
        (void)snprintf(colon, sizeof address->text - (size_t)(colon - address->text), ":%s", port);
    }
}

int listener_open(struct listener_address *address, char *why, size_t why_size)
{
    int yes = 1;
    int fd = socket(address->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0117); /* a unix socket: owner and group */

    if (*address->path) {
        remove_stale(address);
    }
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(fd, (const struct sockaddr *)&address->address, address->size) != 0 ||
        listen(fd, BACKLOG) != 0) {
        (void)snprintf(why, why_size, "cannot listen at %s: %s", address->text, strerror(errno));
        descriptor_close(&fd);
    } else if (!*address->path) {
        name_port(fd, address);
    }
    (void)umask(mask);
    return fd;
}
