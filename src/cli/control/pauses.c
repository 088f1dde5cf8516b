/*
 * Setting the pause state of a queue and of its hosts.
 */
#include "cli/control/pauses.h"

#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/audit.h"
#include "cli/lib/reply_fields.h"
#include "queue/calls.h"

bool pauses_read_options(struct cli *cli, int argc, char **argv, const struct option *table,
                         struct pauses_options *options, int *status)
{
    int letter;

    *options = (struct pauses_options){0};
    while ((letter = cli_option(cli, argc, argv, ":" CLI_COMMON_LETTERS, table, status)) !=
           CLI_OPTION_END) {
        if (letter == CLI_OPTION_STOP) {
            return false;
        }
        options->wait = options->wait || letter == PAUSES_OPTION_WAIT;
        options->all = options->all || letter == PAUSES_OPTION_ALL;
        options->json = options->json || letter == PAUSES_OPTION_JSON;
    }
    return true;
}

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
    command_free(&command);
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
