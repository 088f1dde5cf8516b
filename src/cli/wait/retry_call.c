/*
 * Calls that survive an outage of Redis.
 */
#include "cli/wait/retry_call.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "redis/connection/backoff.h"
#include "redis/server/discovery.h"

#define LATE_MS 1000 /* by which the reply to a read that blocks until the deadline may be late */

/* ---- calls */

static struct redisReply *check(struct retry *retry, struct redisReply *reply, size_t elements)
{
    if (!reply || elements == 0) {
        return reply;
    }
    retry->status = cli_check_reply(reply, elements);
    if (retry->status == EX_OK) {
        return reply;
    }
    freeReplyObject(reply);
    return NULL;
}

struct redisReply *retry_call(struct retry *retry, struct cli *cli, struct command *command,
                              size_t elements)
{
    return check(retry,
                 client_call(cli->client, command, &retry->error, retry->why, sizeof retry->why),
                 elements);
}

struct redisReply *retry_blocking_call(struct retry *retry, struct cli *cli,
                                       struct command *command, int64_t block_ms)
{
    int64_t most_ms = block_ms + cli->config->redis.command_timeout_ms;
    int64_t until_ns = clock_boot_ns() + most_ms * CLOCK_NS_PER_MS;
    struct redisReply *reply;

    if (until_ns - LATE_MS * CLOCK_NS_PER_MS > retry->deadline_ns) {
        until_ns = retry->deadline_ns + LATE_MS * CLOCK_NS_PER_MS;
    }
    if (command && client_append(cli->client, command) != 0) {
        retry->status = cli_no_memory();
        return NULL;
    }
    reply = client_wait(cli->client, until_ns, retry->mask, &retry->error, retry->why,
                        sizeof retry->why);
    if (!reply && retry->error == REDIS_ERROR_NONE && clock_boot_ns() >= until_ns) {
        retry->error = REDIS_ERROR_LOST;
        (void)snprintf(retry->why, sizeof retry->why, "no answer");
    }
    return reply;
}

int64_t retry_until_ms(int64_t at_ns, int64_t most_ms)
{
    int64_t left_ms = (at_ns - clock_boot_ns()) / CLOCK_NS_PER_MS;

    if (left_ms < 1) {
        return 1;
    }
    return left_ms < most_ms ? left_ms : most_ms;
}

int64_t retry_left_ms(const struct retry *retry, int64_t most_ms)
{
    return retry_until_ms(retry->deadline_ns, most_ms);
}

/* ---- reconnecting */

/* A server that the config names may get back a role that it had; sentinels and a Cluster name the
 * new master. */
static bool is_temporary(const struct retry *retry, const struct cli *cli)
{
    static const bool temporary[REDIS_ERROR_OTHER + 1] = {
        [REDIS_ERROR_LOST] = true,     [REDIS_ERROR_LATER] = true,
        [REDIS_ERROR_ROLE] = true,     [REDIS_ERROR_NO_WRITE] = true,
        [REDIS_ERROR_NO_GROUP] = true, [REDIS_ERROR_NO_LIBRARY] = true,
    };

    if (retry->error == REDIS_ERROR_ROLE && !retry->worked) {
        return discovery_is_needed(&cli->config->redis);
    }
    return temporary[retry->error];
}

/* Returns 0, EX_TEMPFAIL or RETRY_SIGNAL. */
static int pause_before(const struct retry *retry, const struct config_redis *config)
{
    double delay_s = backoff_delay(config, retry->failures);
    int64_t now_ns = clock_boot_ns(), until_ns = now_ns + (int64_t)(delay_s * CLOCK_NS_PER_S);
    int64_t end_ns = until_ns < retry->deadline_ns ? until_ns : retry->deadline_ns;
    struct timespec left = {0};

    if (end_ns > now_ns) {
        left = (struct timespec){.tv_sec = (time_t)((end_ns - now_ns) / CLOCK_NS_PER_S),
                                 .tv_nsec = (long)((end_ns - now_ns) % CLOCK_NS_PER_S)};
    }
    if (ppoll(NULL, 0, &left, retry->mask) < 0 && errno == EINTR) {
        return RETRY_SIGNAL;
    }
    return until_ns < retry->deadline_ns ? 0 : EX_TEMPFAIL;
}

/* Without the functions nothing goes on until somebody loads them; any other outage may end by
 * itself. */
static void say_retrying(const struct retry *retry, const struct config *config)
{
    bool must_act = retry->error == REDIS_ERROR_NO_LIBRARY &&
                    config->queue.load_library == CONFIG_LIBRARY_NEVER;

    cli_error("%s: %s; retrying%s%s", retry->what, retry->why, must_act ? "; " : "",
              must_act ? redis_error_advice(retry->error, config->redis.by_url) : "");
}

int retry_reconnect(struct retry *retry, struct cli *cli)
{
    int status;

    if (is_temporary(retry, cli) && !retry->told) {
        srand48((long)clock_boot_ns());
        say_retrying(retry, cli->config);
    }
    retry->told = true;
    cli_disconnect(cli);
    while (is_temporary(retry, cli)) {
        status = pause_before(retry, &cli->config->redis);
        if (status != 0) {
            return status;
        }
        retry->failures++;
        if (cli_try_connect(cli, &retry->error, retry->why, sizeof retry->why) == 0) {
            return 0;
        }
    }
    return cli_call_failed(cli, retry->what, retry->error, retry->why);
}

void retry_recovered(struct retry *retry)
{
    retry->failures = 0;
    retry->told = false;
    retry->worked = true;
}
