/* A private redis-server on a unix socket in a temporary folder, for unit tests. It dies with
 * the test program. */
#ifndef LEAT_TESTS_SERVER_H
#define LEAT_TESTS_SERVER_H

#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/config.h"

struct server {
    char folder[64];
    char socket[80];
    pid_t pid;
    struct config_redis config; /* leads to it, as the default user */
};

static inline bool server_answers(const struct server *server)
{
    redisContext *redis = redisConnectUnix(server->socket);
    redisReply *reply = redis && !redis->err ? redisCommand(redis, "PING") : NULL;
    bool fine = reply && reply->type == REDIS_REPLY_STATUS;
    if (reply) {
        freeReplyObject(reply);
    }
    if (redis) {
        redisFree(redis);
    }
    return fine;
}

/* Starts it in the folder that is there; ends the test program where that fails. */
static inline void server_launch(struct server *server)
{
    server->pid = fork();
    if (server->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG,
                    SIGKILL); /* without it a failed test leaves a server behind */
        (void)!freopen("/dev/null", "w", stdout);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", server->socket,
               "--save", "", "--dir", server->folder, (char *)NULL);
        _exit(127);
    }
    int64_t deadline_ns = clock_boot_ns() + 60 * CLOCK_NS_PER_S;
    while (!server_answers(server)) {
        if (server->pid < 0 || clock_boot_ns() > deadline_ns) {
            (void)fprintf(stderr, "redis-server does not start\n"); /* nothing else can be done */
            exit(1);
        }
        (void)poll(NULL, 0, 2); /* the step between two tries */
    }
}

static inline void server_start(struct server *server)
{
    *server = (struct server){.folder = "/tmp/leat-unit-XXXXXX"};
    if (!mkdtemp(server->folder)) {
        exit(1);
    }
    if (snprintf(server->socket, sizeof server->socket, "%s/s", server->folder) < 0) {
        exit(1);
    }
    server->config = (struct config_redis){
        .socket = server->socket,
        .connect_timeout_ms = 20000,
        .command_timeout_ms = 20000,
        .keepalive_s = 60,
    };
    server_launch(server);
}

static inline void server_kill(struct server *server)
{
    if (server->pid > 0) {
        (void)kill(server->pid, SIGKILL); /* ours, not yet reaped: cannot fail */
        (void)waitpid(server->pid, NULL, 0);
    }
    server->pid = 0;
    (void)unlink(server->socket); /* may be gone */
}

static inline void server_stop(struct server *server)
{
    server_kill(server);
    (void)rmdir(server->folder); /* a folder left behind fails no test */
}

/* One command of words on a connection of its own; ends the program where it is refused. */
static inline long long server_do(const struct server *server, const char *words)
{
    redisContext *redis = redisConnectUnix(server->socket);
    redisReply *reply = redis && !redis->err ? redisCommand(redis, words) : NULL;
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        (void)fprintf(stderr, "%s: %s\n", words, reply ? reply->str : "no answer"); /* as above */
        exit(1);
    }
    long long number = reply->integer;
    freeReplyObject(reply);
    redisFree(redis);
    return number;
}

#endif
