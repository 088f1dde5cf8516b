/*
 * leat doctor: examines what a client that does not log in may do.
 */
#include <hiredis/hiredis.h>

#include "base/join.h"
#include "cli/doctor/doctor.h"
#include "queue/calls.h"
#include "redis/server/client.h"

#define WHY_SIZE 256

/* A right, and what a user can do who has it. */
static const char *const may[] = {
    [QUEUE_PROBE_READ] = "read tasks",
    [QUEUE_PROBE_ADD] = "add tasks",
    [QUEUE_PROBE_LOAD] = "replace the functions",
    [QUEUE_PROBE_CONFIGURE] = "configure Redis",
};

/* Whether the user has the right. *lost: the connection is lost. */
static bool is_allowed(struct client *client, const struct queue *queue, enum queue_probe probe,
                       bool *lost)
{
    enum redis_error error = REDIS_ERROR_NONE;
    struct command command = {0};
    struct redisReply *reply;
    char why[WHY_SIZE];

    queue_probe(&command, queue, probe);
    reply = client_call_once(client, &command, &error, why, sizeof why);
    command_free(&command);
    if (reply) {
        freeReplyObject(reply);
        return true;
    }
    *lost = error == REDIS_ERROR_LOST;
    return !*lost && error != REDIS_ERROR_DENIED;
}

void doctor_examine_login(struct doctor_report *report)
{
    const struct config *config = report->cli->config;
    struct config_redis anonymous = config->redis;
    enum redis_error error = REDIS_ERROR_NONE;
    char why[WHY_SIZE], all[160] = "";
    struct client *client;
    bool lost = false;

    anonymous.user = anonymous.password = NULL;
    client = client_open(&anonymous, NULL, &error, why, sizeof why);
    /* a client that cannot even connect without a login may do nothing */
    for (size_t i = 0; client && i < sizeof may / sizeof *may && !lost; i++) {
        if (is_allowed(client, &report->cli->queue, (enum queue_probe)i, &lost)) {
            join_word(all, sizeof all, ", ", may[i]);
        }
    }
    client_close(client);
    if (*all) {
        doctor_add_text(report, config->redis.password ? "open" : "no-password", "without a login",
                        DOCTOR_FOUND, NULL, "%s", all);
    }
}
