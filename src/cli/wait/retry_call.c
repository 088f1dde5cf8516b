#include "cli/wait/retry_call.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "redis/connection/backoff.h"

/* ---- calls */

static struct redisReply *check(struct patience *patience, struct redisReply *reply,
                                size_t elements)
{
    if (!reply || elements == 0) {
        return reply;
    }
    patience->status = cli_check_reply(reply, elements);
    if (patience->status == EX_OK) {
        return reply;
    }
    freeReplyObject(reply);
    return NULL;
}

struct redisReply *patience_call(struct patience *patience, struct cli *cli,
                                 struct command *command, size_t elements)
{
    return check(
        patience,
        client_call(cli->client, command, &patience->error, patience->why, sizeof patience->why),
        elements);
}

struct redisReply *patience_block(struct patience *patience, struct cli *cli,
                                  struct command *command, int64_t block_ms)
{
    int64_t most_ms = block_ms + cli->config->redis.command_timeout_ms;
    int64_t until_ns = clock_boot_ns() + most_ms * CLOCK_NS_PER_MS;
    struct redisReply *reply;

    if (command && client_append(cli->client, command) != 0) {
        patience->status = cli_no_memory();
        return NULL;
    }
    reply = client_wait(cli->client, until_ns, patience->mask, &patience->error, patience->why,
                        sizeof patience->why);
    if (!reply && patience->error == REDIS_ERROR_NONE && clock_boot_ns() >= until_ns) {
        patience->error = REDIS_ERROR_LOST;
        (void)snprintf(patience->why, sizeof patience->why, "no answer");
    }
    return reply;
}

int64_t patience_left_ms(const struct patience *patience, int64_t most_ms)
{
    int64_t left_ms = (patience->deadline_ns - clock_boot_ns()) / CLOCK_NS_PER_MS;

    if (left_ms < 1) {
        return 1;
    }
    return left_ms < most_ms ? left_ms : most_ms;
}

/* ---- reconnecting */

static bool is_passing(enum redis_error error)
{
    switch (error) {
    case REDIS_ERROR_LOST:
    case REDIS_ERROR_LATER:
    case REDIS_ERROR_ROLE:
    case REDIS_ERROR_NO_WRITE:
    case REDIS_ERROR_NO_GROUP:
    case REDIS_ERROR_NO_LIBRARY:
        return true;
    case REDIS_ERROR_NONE:
    case REDIS_ERROR_DENIED:
    case REDIS_ERROR_UNFIT:
    case REDIS_ERROR_FOREIGN:
    case REDIS_ERROR_CALLER:
    case REDIS_ERROR_OTHER:
        break;
    }
    return false;
}

/* Returns 0, EX_TEMPFAIL or PATIENCE_SIGNAL. */
static int pause_before(const struct patience *patience, const struct config_redis *config)
{
    double delay_s = backoff_delay(config, patience->failures);
    int64_t now_ns = clock_boot_ns(), until_ns = now_ns + (int64_t)(delay_s * CLOCK_NS_PER_S);
    int64_t end_ns = until_ns < patience->deadline_ns ? until_ns : patience->deadline_ns;
    struct timespec left = {0};

    if (end_ns > now_ns) {
        left = (struct timespec){.tv_sec = (time_t)((end_ns - now_ns) / CLOCK_NS_PER_S),
                                 .tv_nsec = (long)((end_ns - now_ns) % CLOCK_NS_PER_S)};
    }
    if (ppoll(NULL, 0, &left, patience->mask) < 0 && errno == EINTR) {
        return PATIENCE_SIGNAL;
    }
    return until_ns < patience->deadline_ns ? 0 : EX_TEMPFAIL;
}

int patience_reconnect(struct patience *patience, struct cli *cli)
{
    int status;

    if (is_passing(patience->error) && !patience->told) {
        srand48((long)clock_boot_ns());
        cli_error("%s: %s; waiting until that works again", patience->what, patience->why);
    }
    patience->told = true;
    cli_disconnect(cli);
    while (is_passing(patience->error)) {
        status = pause_before(patience, &cli->config->redis);
        if (status != 0) {
            return status;
        }
        patience->failures++;
        if (cli_try_connect(cli, &patience->error, patience->why, sizeof patience->why) == 0) {
            return 0;
        }
    }
    return cli_call_failed(patience->what, patience->error, patience->why);
}

void patience_end(struct patience *patience)
{
    patience->failures = 0;
    patience->told = false;
}
