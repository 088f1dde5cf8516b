#include "cli/gate.h"

#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/act.h"
#include "cli/record.h"

bool gate_read_options(struct cli *cli, int argc, char **argv, const struct option *table,
                       struct gate_options *options, int *status)
{
    int letter;

    *options = (struct gate_options){0};
    while ((letter = cli_option(cli, argc, argv, ":" CLI_COMMON_LETTERS, table, status)) !=
           CLI_OPTION_END) {
        if (letter == CLI_OPTION_STOP)
            return false;
        options->wait = options->wait || letter == GATE_OPTION_WAIT;
        options->all = options->all || letter == GATE_OPTION_ALL;
        options->json = options->json || letter == GATE_OPTION_JSON;
    }
    return true;
}

static void record_gate(const struct cli *cli, const char *name, bool closed)
{
    static const char drain[] = "drain:";
    const char *host = name + sizeof drain - 1;
    struct operator_act act = {.event = closed ? "operator-pause" : "operator-resume"};

    if (strncmp(name, drain, sizeof drain - 1) != 0) {
        act_record(cli, &act, "%s the queue", closed ? "paused" : "resumed");
        return;
    }
    act.event = closed ? "operator-drain" : "operator-undrain";
    act_record(cli, &act, "%s %s", closed ? "drained" : "undrained",
               strcmp(host, "*") == 0 ? "all hosts" : host);
}

int gate_set(struct cli *cli, const char *name, bool closed, bool *changed)
{
    struct command command = {0};
    struct redisReply *reply;
    char who[ACT_WHO_SIZE];
    int status;

    act_who(who);
    queue_gate(&command, &cli->queue, name, closed, who);
    reply = cli_call(cli, &command, closed ? "cannot close the gate" : "cannot open the gate", 2,
                     &status);
    command_free(&command);
    if (!reply)
        return status;
    *changed = record_integer(reply->element[1], 0) == 0;
    freeReplyObject(reply);
    if (*changed)
        record_gate(cli, name, closed);
    return EX_OK;
}
