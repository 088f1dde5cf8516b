/*
 * leat dead retry and leat dead drop.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "cli/dead.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/show.h"
#include "queue/error.h"

#define BATCH 100 /* letters in one call, as leat.lua has it */
#define WHY_SIZE 512

struct act {
    struct cli *cli;
    bool retry;
    size_t done, gone, failed, missing;
    int status; /* of the last failure */
};

static struct redisReply *call(struct act *act, const struct letter *letters, size_t count)
{
    const char *ids[BATCH];
    struct command command = {0};
    struct redisReply *reply;
    int status;

    for (size_t i = 0; i < count; i++)
        ids[i] = letters[i].dead_id;
    queue_dead(&command, &act->cli->queue, act->retry, ids, count);
    reply = cli_call(act->cli, &command,
                     act->retry ? "cannot retry dead letters" : "cannot drop dead letters",
                     count + 1, &status);
    command_free(&command);
    if (!reply)
        act->status = status;
    return reply;
}

/* A letter that was refused stays where it was, and stops no other. */
static void count_answer(struct act *act, const struct letter *letter, struct bytes answer)
{
    char what[128], why[WHY_SIZE];

    if (bytes_equal(answer, "ok")) {
        act->done++;
    } else if (bytes_equal(answer, "gone")) {
        act->gone++;
    } else {
        act->failed++;
        /* an id of 47 letters fits */
        (void)snprintf(what, sizeof what, "cannot %s %s", act->retry ? "retry" : "drop",
                       letter->tid);
        bytes_copy(answer, why, sizeof why);
        act->status = cli_call_failed(what, redis_error_classify(why, strlen(why)), why);
    }
}

/* False where going on is of no use. */
static bool act_on_batch(struct act *act, const struct letter *letters, size_t count)
{
    struct redisReply *reply = call(act, letters, count);

    if (!reply) {
        act->failed += count;
        return false;
    }
    for (size_t i = 0; i < count; i++)
        count_answer(act, &letters[i], record_value(reply->element[i + 1]));
    freeReplyObject(reply);
    return true;
}

static int print_dry_run(const struct letters *letters, const struct dead_options *options,
                         bool retry)
{
    for (size_t i = 0; i < letters->count && !options->json; i++)
        /* failures show when stdout is flushed */
        (void)printf("would %s %s\n", retry ? "retry" : "drop", letters->items[i].tid);
    if (options->json)
        return output_json(json_pack("{s:s, s:b, s:I}", "action", retry ? "retry" : "drop",
                                     "dry_run", 1, "letters", (json_int_t)letters->count),
                           true);
    return EX_OK;
}

static int print_result(const struct act *act, bool json)
{
    if (json)
        return output_json(
            json_pack("{s:s, s:I, s:I, s:I, s:I}", "action", act->retry ? "retry" : "drop", "done",
                      (json_int_t)act->done, "gone", (json_int_t)act->gone, "failed",
                      (json_int_t)act->failed, "not_found", (json_int_t)act->missing),
            true);
    /* failures show when stdout is flushed */
    (void)printf("%s %zu dead letter%s", act->retry ? "retried" : "dropped", act->done,
                 act->done == 1 ? "" : "s");
    if (act->gone > 0)
        (void)printf(", %zu had gone meanwhile", act->gone);
    if (act->failed > 0)
        (void)printf(", %zu failed", act->failed);
    (void)puts("");
    return EX_OK;
}

/* Dropping by filter asks first; letters named one by one are meant. */
static int confirm(const struct cli *cli, const struct dead_options *options,
                   const struct letters *letters)
{
    char answer[16];

    if (options->yes || options->id_count > 0 || letters->count == 0)
        return EX_OK;
    if (isatty(STDIN_FILENO) != 1)
        return cli_usage(cli, "this would drop %zu dead letters for good: add --yes",
                         letters->count);
    (void)fprintf(stderr, "Drop %zu dead letters of %s for good? [y/N] ", letters->count,
                  cli->config->queue.name);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return EX_OK;
    cli_error("nothing was dropped");
    return SHOW_NOT_FOUND;
}

static int act_on_all(struct act *act, const struct dead_options *options,
                      const struct letters *letters)
{
    size_t count;
    int status = act->retry ? EX_OK : confirm(act->cli, options, letters);

    if (status != EX_OK)
        return status;
    for (size_t i = 0; i < letters->count; i += count) {
        count = letters->count - i < BATCH ? letters->count - i : BATCH;
        if (!act_on_batch(act, &letters->items[i], count))
            break;
    }
    status = print_result(act, options->json);
    return status != EX_OK ? status : act->status;
}

int dead_act(struct cli *cli, const struct dead_options *options, bool retry)
{
    struct act act = {.cli = cli, .retry = retry};
    struct letters letters = {0};
    int status;

    if (options->id_count > 0 && (options->all || dead_has_filter(options)))
        return cli_usage(cli, "give ids, or --all or filters, not both");
    if (options->id_count == 0 && !options->all && !dead_has_filter(options))
        return cli_usage(cli, "which? Give ids, --all, or a filter");
    status = dead_select(cli, options, &letters, &act.missing);
    if (status == EX_OK && options->dry_run)
        status = print_dry_run(&letters, options, retry);
    else if (status == EX_OK)
        status = act_on_all(&act, options, &letters);
    free(letters.items);
    return status == EX_OK && act.missing > 0 ? SHOW_NOT_FOUND : status;
}
