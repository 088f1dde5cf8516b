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

static void record_gate(const struct cli *cli, const char *name, bool closed)
{
    static const char drain[] = "drain:";
    const char *host = name + sizeof drain - 1;
    struct audit act = {.event = closed ? "operator-pause" : "operator-resume"};

    if (strncmp(name, drain, sizeof drain - 1) != 0) {
        audit_record(cli, &act, "%s the queue", closed ? "paused" : "resumed");
        return;
    }
    act.event = closed ? "operator-drain" : "operator-undrain";
    audit_record(cli, &act, "%s %s", closed ? "drained" : "undrained",
                 strcmp(host, "*") == 0 ? "all hosts" : host);
}

int pauses_set(struct cli *cli, const char *name, bool closed, bool *changed)
{
    struct command command = {0};
    struct redisReply *reply;
    char who[AUDIT_WHO_SIZE];
    int status;

    audit_who(who);
    queue_pause(&command, &cli->queue, name, closed, who);
    reply = cli_call(cli, &command, closed ? "cannot close the gate" : "cannot open the gate", 2,
                     &status);
    command_free(&command);
    if (!reply) {
        return status;
    }
    *changed = fields_integer(reply->element[1], 0) == 0;
    freeReplyObject(reply);
    if (*changed) {
        record_gate(cli, name, closed);
    }
    return EX_OK;
}
