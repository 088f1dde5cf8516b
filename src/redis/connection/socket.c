/* Sets options of a connection's socket, and reads the last words of a server. */
#include "redis/connection/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "redis/connection/tls.h"

static int set_options(int fd, const struct config_redis *config)
{
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return -1;
    }
    if (config->socket || config->keepalive_s <= 0) {
        return 0;
    }
    /* a vanished peer is noticed after twice the idle time at the latest */
    int on = 1, idle = (int)config->keepalive_s, probes = 3;
    int interval = idle / probes > 0 ? idle / probes : 1;
    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval) ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes)) {
        return -1;
    }
    return 0;
}

int socket_prepare(struct redisContext *redis, const struct config_redis *config, char *why,
                   size_t size)
{
    if (set_options(redis->fd, config)) {
        (void)snprintf(why, size, "setting up the socket: %s", strerror(errno));
        return -1;
    }
    return tls_begin(redis, config, why, size);
}

enum redis_error socket_find_last_words(const struct redisContext *redis, char *text, size_t size)
{
    if (tls_explain(redis, text, size) == 0) {
        return REDIS_ERROR_LOST;
    }
    char raw[192];
    ssize_t got = recv(redis->fd, raw, sizeof raw - 1, MSG_DONTWAIT);
    raw[got > 0 ? got : 0] = '\0';
    raw[strcspn(raw, "\r\n")] = '\0';
    if (raw[0] == '-') {
        (void)snprintf(text, size, "%s", raw + 1);
    } else {
        size_t used = strlen(text);
        (void)snprintf(text + used, size - used, SOCKET_UNHEARD);
    }
    enum redis_error error = redis_error_classify(text, strlen(text));
    return error == REDIS_ERROR_OTHER ? REDIS_ERROR_LOST : error;
}
