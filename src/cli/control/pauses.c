/*
 * Setting the pause state of a queue and of its hosts.
 */
#include "cli/control/pauses.h"

#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/audit.h"
#include "queue/calls.h"
#include "view/reply_fields.h"

static void record_change(const struct cli *cli, const char *name, bool paused)
{
    static const char drain[] = "drain:";
    const char *host = name + sizeof drain - 1;
    struct audit act = {.event = paused ? "operator-pause" : "operator-resume"};

    if (strncmp(name, drain, sizeof drain - 1) != 0) {
        audit_record(cli, &act, "%s the queue", paused ? "paused" : "resumed");
        return;
    }
    act.event = paused ? "operator-drain" : "operator-undrain";
    audit_record(cli, &act, "%s %s", paused ? "drained" : "undrained",
                 strcmp(host, "*") == 0 ? "all hosts" : host);
}

int pauses_set(struct cli *cli, const char *name, bool paused, bool *changed)
{
    struct command command = {0};
    struct redisReply *reply;
    char who[AUDIT_WHO_SIZE];
    int status;

    audit_who(who);
    queue_pause(&command, &cli->queue, name, paused, who);
    reply = cli_call(cli, &command, paused ? "cannot pause" : "cannot resume", 2, &status);
    if (!reply) {
        return status;
    }
    *changed = fields_integer(reply->element[1], 0) == 0;
    freeReplyObject(reply);
    if (*changed) {
        record_change(cli, name, paused);
    }
    return EX_OK;
}
