/*
 * Waiting until enough replicas have the enqueued tasks.
 */
#include "cli/enqueue/replica_wait.h"

#include <hiredis/hiredis.h>

#include "queue/calls.h"
#include "view/reply_fields.h"

#define WHY_SIZE 256

/* Returns how many replicas have the tasks, or −1 with the reason why this is unknown. Only the
 * server that accepted them can tell: after a failover, the new master may not have them. */
static int64_t ask(const struct cli *cli, uint64_t tasks, char *why)
{
    const struct config_redis *redis = &cli->config->redis;
    enum redis_error error = REDIS_ERROR_OTHER;
    struct command command = {0};
    struct redisReply *reply;
    int64_t have = -1;

    queue_mark(&command, &cli->queue, QUEUE_WAITED, (int64_t)tasks);
    reply = client_call_here(cli->client, &command, &error, why, WHY_SIZE);
    if (reply) {
        freeReplyObject(reply);
        queue_wait_replicas(&command, redis->wait_replicas, redis->wait_timeout_ms);
        reply = client_call_here(cli->client, &command, &error, why, WHY_SIZE);
        have = reply ? fields_integer(reply, -1) : -1;
        freeReplyObject(reply);
    }
    if (have >= 0 && have < redis->wait_replicas) {
        char ignored[WHY_SIZE];
        queue_mark(&command, &cli->queue, QUEUE_UNREPLICATED, (int64_t)tasks);
        freeReplyObject(client_call_here(cli->client, &command, &error, ignored, sizeof ignored));
    }
    command_free(&command);
    return have;
}

int cli_wait_replicas(const struct cli *cli, uint64_t tasks)
{
    int64_t wanted = cli->config->redis.wait_replicas, have;
    char why[WHY_SIZE] = "unexpected reply from Redis";

    if (wanted == 0 || tasks == 0) {
        return EX_OK;
    }
    have = ask(cli, tasks, why);
    if (have >= wanted) {
        return EX_OK;
    }
    if (have < 0) {
        cli_error("enqueued, but leat cannot tell whether replicas have it: %s", why);
    } else {
        cli_error("enqueued, but only %lld of %lld replicas have it so far; a failover now could "
                  "lose it",
                  (long long)have, (long long)wanted);
    }
    return REPLICAS_TOO_FEW;
}
