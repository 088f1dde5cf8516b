/* Connects, sends and receives, one command after the other. */
#include "redis/server/client.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "redis/connection/socket.h"
#include "redis/reply_bounds.h"
#include "redis/server/discovery.h"
#include "redis/server_command.h"

#define PAUSE_NS (50 * CLOCK_NS_PER_MS)

struct client {
    redisContext *redis;
    const struct config_redis *config;
    int64_t timeout_ms;
    const struct client_setup *setup;
    bool heard;                          /* the server has answered something */
    bool refused;                        /* a reply was not bounded */
    redisReplyObjectFunctions functions; /* of the reader: they bound replies */
    redisReplyObjectFunctions *makers;   /* hiredis's own */
};

/* Where the caller wants an error. */
struct trouble {
    enum redis_error *error;
    char *why;
    size_t size;
};

static void tell(const struct trouble *trouble, enum redis_error error, const char *what,
                 const char *detail)
{
    *trouble->error = error;
    (void)snprintf(trouble->why, trouble->size, "%s%s%s", what, *what ? ": " : "", detail);
}

static struct timeval to_timeval(int64_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000 * 1000)};
}

/* ---- calls ---- */

static void tell_broken(const struct client *client, const struct trouble *trouble)
{
    if (client->redis->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        char duration[48], detail[80];
        units_format_duration(client->timeout_ms, duration, sizeof duration);
        (void)snprintf(detail, sizeof detail, "no answer within %s", duration);
        tell(trouble, REDIS_ERROR_LOST, "", detail);
        return;
    }
    char detail[256];
    (void)snprintf(detail, sizeof detail, "%s%s",
                   client->refused ? REPLY_BOUNDS_WHY : client->redis->errstr,
                   client->heard ? "" : SOCKET_UNHEARD);
    tell(trouble, REDIS_ERROR_LOST, "", detail);
}

/* Turns an error reply into class, message and NULL. */
static redisReply *judge(redisReply *reply, const struct trouble *trouble)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        const char *text = NULL;
        enum redis_error error = redis_error_classify(reply->str, reply->len);
        size_t size = redis_error_text(reply->str, reply->len, &text);
        *trouble->error = error;
        (void)snprintf(trouble->why, trouble->size, "%.*s", (int)size, text);
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

/* Waits for the next reply. */
static redisReply *receive(struct client *client, const struct trouble *trouble)
{
    void *answer = NULL;
    if (redisGetReply(client->redis, &answer) != REDIS_OK || !answer) {
        tell_broken(client, trouble);
        return NULL;
    }
    client->heard = true;
    return judge(answer, trouble);
}

static redisReply *call(struct client *client, struct command *command,
                        const struct trouble *trouble)
{
    if (client_append(client, command)) {
        tell(trouble, REDIS_ERROR_NO_MEMORY, "", "out of memory");
        return NULL;
    }
    return receive(client, trouble);
}

struct redisReply *client_call_once(struct client *client, struct command *command,
                                    enum redis_error *error, char *why, size_t why_size)
{
    return call(client, command, &(struct trouble){.error = error, .why = why, .size = why_size});
}

int client_perform(struct client *client, struct command *command, const char *what,
                   enum redis_error *error, char *why, size_t why_size)
{
    struct trouble trouble = {.error = error, .why = why, .size = why_size};
    char detail[256] = "";
    redisReply *reply = client_call_once(client, command, error, detail, sizeof detail);
    if (!reply) {
        tell(&trouble, *error, what, detail);
        return -1;
    }
    freeReplyObject(reply);
    return 0;
}

/* ---- opening ---- */

static int perform(struct client *client, struct command *command, const char *what,
                   const struct trouble *trouble)
{
    return client_perform(client, command, what, trouble->error, trouble->why, trouble->size);
}

static int authenticate(struct client *client, const struct config_redis *config,
                        const struct trouble *trouble)
{
    if (!config->password) {
        return 0;
    }
    struct command command = {0};
    server_auth(&command, config->user, config->password);
    int result = perform(client, &command, "AUTH", trouble);
    command_wipe(&command);
    return result;
}

static int select_db(struct client *client, const struct config_redis *config,
                     const struct trouble *trouble)
{
    if (config->db == 0) {
        return 0;
    }
    struct command command = {0};
    server_select(&command, config->db);
    int result = perform(client, &command, "SELECT", trouble);
    command_free(&command);
    return result;
}

/* For each answer from now on. */
static int wait_at_most(struct client *client, int64_t ms)
{
    client->timeout_ms = ms;
    return redisSetTimeout(client->redis, to_timeval(ms)) == REDIS_OK ? 0 : -1;
}

static void *create_array(const redisReadTask *task, reply_bounds_count elements)
{
    struct client *client = task->privdata;
    if (!reply_bounds_allow(task, elements)) {
        client->refused = true;
        return NULL;
    }
    return client->makers->createArray(task, elements);
}

static void begin_bounds(struct client *client)
{
    redisReader *reader = client->redis->reader;
    client->refused = false;
    client->makers = reader->fn;
    client->functions = *reader->fn;
    client->functions.createArray = create_array;
    reader->fn = &client->functions;
    reader->privdata = client;
}

static int connect_redis(struct client *client, const struct config_redis *config,
                         const struct trouble *trouble)
{
    char address[256];
    struct timeval limit = to_timeval(config->connect_timeout_ms);
    if (config->socket) {
        (void)snprintf(address, sizeof address, "connecting to %s", config->socket);
        client->redis = redisConnectUnixWithTimeout(config->socket, limit);
    } else {
        (void)snprintf(address, sizeof address, "connecting to %s:%lld", config->host,
                       (long long)config->port);
        client->redis = redisConnectWithTimeout(config->host, (int)config->port, limit);
    }
    if (!client->redis || client->redis->err) {
        tell(trouble, client->redis ? REDIS_ERROR_LOST : REDIS_ERROR_NO_MEMORY, address,
             client->redis ? client->redis->errstr : "out of memory");
        return -1;
    }
    begin_bounds(client);
    char why[256] = "cannot set up the socket";
    if (wait_at_most(client, config->connect_timeout_ms) ||
        socket_prepare(client->redis, config, why, sizeof why)) {
        tell(trouble, REDIS_ERROR_LOST, address, why);
        return -1;
    }
    return 0;
}

/* The server that was discovered may still be a replica, or be one again. A user without the right
 * to ask finds out by the first refused command. */
static int check_role(struct client *client, const struct trouble *trouble)
{
    struct command command = {0};
    endpoint_ask_role(&command);
    redisReply *reply = call(client, &command, trouble);
    command_free(&command);
    if (!reply) {
        return *trouble->error == REDIS_ERROR_DENIED ? 0 : -1;
    }
    bool is_master = endpoint_read_role(reply);
    freeReplyObject(reply);
    if (!is_master) {
        tell(trouble, REDIS_ERROR_ROLE, "", "the discovered server is a replica");
        return -1;
    }
    return 0;
}

static int set_up(struct client *client, const struct trouble *trouble)
{
    const struct client_setup *setup = client->setup;
    if (wait_at_most(client, client->config->command_timeout_ms)) {
        tell(trouble, REDIS_ERROR_LOST, "", "cannot set up the socket");
        return -1;
    }
    return setup
               ? setup->opened(setup->context, client, trouble->error, trouble->why, trouble->size)
               : 0;
}

static int open_at(struct client *client, const struct config_redis *config,
                   const struct trouble *trouble)
{
    if (client->redis) {
        redisFree(client->redis);
        client->redis = NULL;
    }
    client->heard = false;
    return connect_redis(client, config, trouble) || authenticate(client, config, trouble) ||
                   select_db(client, config, trouble) ||
                   (discovery_is_needed(config) && check_role(client, trouble)) ||
                   set_up(client, trouble)
               ? -1
               : 0;
}

static int open_found(struct client *client, const struct trouble *trouble)
{
    struct endpoint endpoint;
    if (discovery_find(client->config, &endpoint, trouble->error, trouble->why, trouble->size)) {
        return -1;
    }
    struct config_redis redis = discovery_apply(client->config, &endpoint);
    return open_at(client, &redis, trouble);
}

/* Whether another server may soon run the command. With these errors this one has not run it. */
static bool is_elsewhere(const struct client *client, enum redis_error error)
{
    return discovery_is_needed(client->config) &&
           (error == REDIS_ERROR_ROLE || error == REDIS_ERROR_LATER);
}

/* Pauses and returns true, or returns false if the deadline would pass. */
static bool pause_until(int64_t deadline_ns)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (clock_boot_ns() + PAUSE_NS > deadline_ns) {
        return false;
    }
    (void)nanosleep(&pause, NULL); /* a signal may shorten it */
    return true;
}

/* If sentinels or a Cluster name the server, waits for a failover to complete. */
static int open_redis(struct client *client, int64_t deadline_ns, const struct trouble *trouble)
{
    if (!discovery_is_needed(client->config)) {
        return open_at(client, client->config, trouble);
    }
    while (open_found(client, trouble)) {
        if ((*trouble->error != REDIS_ERROR_LOST && !is_elsewhere(client, *trouble->error)) ||
            !pause_until(deadline_ns)) {
            return -1;
        }
    }
    return 0;
}

static int64_t patience_end_ns(const struct config_redis *config)
{
    return clock_boot_ns() + config->connect_timeout_ms * CLOCK_NS_PER_MS;
}

struct client *client_open(const struct config_redis *config, const struct client_setup *setup,
                           enum redis_error *error, char *why, size_t why_size)
{
    struct trouble trouble = {.error = error, .why = why, .size = why_size};
    struct client *client = malloc(sizeof *client);
    if (!client) {
        tell(&trouble, REDIS_ERROR_NO_MEMORY, "", "out of memory");
        return NULL;
    }
    *client = (struct client){
        .config = config,
        .setup = setup,
    };
    if (open_redis(client, patience_end_ns(config), &trouble)) {
        client_close(client);
        return NULL;
    }
    return client;
}

void client_close(struct client *client)
{
    if (!client) {
        return;
    }
    if (client->redis) {
        redisFree(client->redis);
    }
    free(client);
}

/* ---- for callers ---- */

/* A refused command is sent again if the setup has removed the reason. */
static redisReply *call_mending(struct client *client, struct command *command,
                                const struct trouble *trouble)
{
    const struct client_setup *setup = client->setup;
    redisReply *reply = call(client, command, trouble);
    if (reply || !setup || *trouble->error == REDIS_ERROR_LOST ||
        !setup->mend(setup->context, client, trouble->error, trouble->why, trouble->size)) {
        return reply;
    }
    return call(client, command, trouble);
}

struct redisReply *client_call_here(struct client *client, struct command *command,
                                    enum redis_error *error, char *why, size_t why_size)
{
    struct trouble trouble = {.error = error, .why = why, .size = why_size};
    return call_mending(client, command, &trouble);
}

struct redisReply *client_call(struct client *client, struct command *command,
                               enum redis_error *error, char *why, size_t why_size)
{
    struct trouble trouble = {.error = error, .why = why, .size = why_size};
    int64_t deadline_ns = patience_end_ns(client->config);
    redisReply *reply = call_mending(client, command, &trouble);
    while (!reply && is_elsewhere(client, *error) && pause_until(deadline_ns) &&
           open_redis(client, deadline_ns, &trouble) == 0) {
        reply = call_mending(client, command, &trouble);
    }
    return reply;
}

int client_append(struct client *client, struct command *command)
{
    const char *data = NULL;
    size_t size = 0;
    if (command_finish(command, &data, &size) ||
        redisAppendFormattedCommand(client->redis, data, size) != REDIS_OK) {
        return -1;
    }
    return 0;
}

/* Sends all appended commands. Returns 0, or -1 if the connection is lost. */
static int flush(struct client *client)
{
    int done = 0;
    while (!done) {
        if (redisBufferWrite(client->redis, &done) != REDIS_OK) {
            return -1;
        }
    }
    return 0;
}

/* Returns 1 if something can be read, 0 after the deadline or a signal, -1 on errors. */
static int wait_readable(const struct client *client, int64_t deadline_ns, const sigset_t *mask)
{
    int64_t left_ns = deadline_ns - clock_boot_ns();
    struct timespec left = {.tv_sec = (time_t)(left_ns / CLOCK_NS_PER_S),
                            .tv_nsec = (long)(left_ns % CLOCK_NS_PER_S)};
    struct pollfd descriptor = {.fd = client->redis->fd, .events = POLLIN};
    if (left_ns <= 0) {
        left = (struct timespec){0};
    }
    int ready = ppoll(&descriptor, 1, &left, mask);
    return ready < 0 && errno == EINTR ? 0 : ready;
}

struct redisReply *client_wait(struct client *client, int64_t deadline_ns, const sigset_t *mask,
                               enum redis_error *error, char *why, size_t why_size)
{
    struct trouble trouble = {.error = error, .why = why, .size = why_size};
    void *answer = NULL;
    *error = REDIS_ERROR_NONE;
    if (flush(client)) {
        tell_broken(client, &trouble);
        return NULL;
    }
    while (redisGetReplyFromReader(client->redis, &answer) == REDIS_OK && !answer) {
        int ready = wait_readable(client, deadline_ns, mask);
        if (ready == 0) {
            return NULL;
        }
        if (ready < 0 || redisBufferRead(client->redis) != REDIS_OK) {
            break;
        }
    }
    if (!answer) {
        tell_broken(client, &trouble);
        return NULL;
    }
    return judge(answer, &trouble);
}

struct redisReply *client_receive(struct client *client, enum redis_error *error, char *why,
                                  size_t why_size)
{
    return receive(client, &(struct trouble){.error = error, .why = why, .size = why_size});
}
