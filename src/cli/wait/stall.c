/*
 * Why no worker can start the tasks that a command waits for.
 */
#include "cli/wait/stall.h"

#include <string.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/status/status.h"
#include "queue/calls.h"

#define FIRST_MS 1000  /* before the first check: most tasks start sooner */
#define AGAIN_MS 60000 /* between checks */

enum reason { NONE, PAUSED, NO_WORKER, DRAINED, NOT_READY };

int64_t stall_left_ms(struct stall *stall, int64_t most_ms)
{
    int64_t now_ns = clock_boot_ns(), left_ms;

    if (stall->due_ns == 0) {
        stall->due_ns = now_ns + FIRST_MS * CLOCK_NS_PER_MS;
    }
    left_ms = (stall->due_ns - now_ns) / CLOCK_NS_PER_MS + 1;
    if (left_ms < 1) {
        return 1;
    }
    return left_ms < most_ms ? left_ms : most_ms;
}

bool stall_is_due(const struct stall *stall)
{
    return stall->due_ns > 0 && clock_boot_ns() >= stall->due_ns;
}

static enum reason find_reason(const struct status *status)
{
    bool any_undrained = false;

    if (status->paused_ms > 0) {
        return PAUSED;
    }
    if (status->live_count == 0) {
        return NO_WORKER;
    }
    for (size_t i = 0; i < status->worker_count; i++) {
        const struct status_worker *worker = &status->workers[i];
        bool ends = strcmp(worker->state, "draining") == 0;
        if (worker->live && !worker->drained && !ends && !status_is_disabled(worker)) {
            return NONE;
        }
        any_undrained |= worker->live && !worker->drained;
    }
    return any_undrained ? NOT_READY : DRAINED;
}

void stall_postpone(struct stall *stall)
{
    stall->due_ns = clock_boot_ns() + AGAIN_MS * CLOCK_NS_PER_MS;
}

bool stall_read(struct stall *stall, const struct cli *cli, const struct redisReply *reply)
{
    struct status status;
    int before = stall->told;

    stall_postpone(stall);
    /* without memory, the next check tries again */
    if (status_read(reply, cli->config->queue.lease_ms, &status) != 0) {
        return false;
    }
    stall->told = (int)find_reason(&status);
    status_free(&status);
    return stall->told != NONE && stall->told != before;
}

void stall_tell(const struct stall *stall, const struct cli *cli)
{
    const char *name = cli->config->queue.name;

    switch ((enum reason)stall->told) {
    case NONE:
        break;
    case PAUSED:
        cli_error("queue %s is paused: tasks that have not started wait for leat resume", name);
        break;
    case NO_WORKER:
        cli_error("queue %s has no worker: tasks that have not started wait until one runs", name);
        break;
    case DRAINED:
        cli_error("all workers of queue %s are drained: tasks that have not started wait for leat "
                  "undrain",
                  name);
        break;
    case NOT_READY:
        cli_error("no worker of queue %s can start tasks now; leat status shows why", name);
        break;
    }
}

void stall_check(struct stall *stall, struct cli *cli)
{
    struct command command = {0};
    enum redis_error error;
    struct redisReply *reply;
    char why[512];

    stall->due_ns = INT64_MAX;
    queue_status(&command, &cli->queue);
    reply = client_call(cli->client, &command, &error, why, sizeof why);
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= STATUS_ELEMENTS &&
        stall_read(stall, cli, reply)) {
        stall_tell(stall, cli);
    }
    freeReplyObject(reply);
    command_free(&command);
}
