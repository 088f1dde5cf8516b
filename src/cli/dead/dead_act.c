/*
 * leat dead retry and leat dead drop. They handle batches while they walk through the letters, so
 * that memory does not grow with the number of letters.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "cli/dead/dead.h"
#include "cli/lib/audit.h"
#include "cli/lib/output.h"
#include "cli/lib/rows.h"
#include "queue/calls.h"
#include "queue/shared/limits.h"
#include "redis/error.h"
#include "view/reply_fields.h"

#define BATCH QUEUE_PAGE /* letters per call, the maximum of the function */
#define MOST_TOLD 20     /* refusals that are printed one by one */
#define WHY_SIZE 512

struct act {
    struct dead_choice *choice;
    bool retry;
    struct dead_letter batch[BATCH];
    size_t batch_count;
    struct audit done;
    size_t gone, failed;
    int status; /* of the last failure */
    bool over;  /* a call failed: stop */
};

/* ---- acting */

static const char *verb(const struct act *act)
{
    return act->retry ? "retry" : "drop";
}

static void print_refusal(struct act *act, const struct dead_letter *letter, struct bytes answer)
{
    enum redis_error error = redis_error_classify(answer.data, answer.size);
    char what[128], why[WHY_SIZE];
    const char *text;
    size_t size;

    act->failed++;
    act->status = cli_status_of(error);
    if (act->failed > MOST_TOLD) {
        return;
    }
    size = redis_error_text(answer.data, answer.size, &text);
    bytes_copy((struct bytes){text, size}, why, sizeof why);
    (void)snprintf(what, sizeof what, "cannot %s %s", verb(act), letter->tid);
    progress_end(&act->choice->progress);
    (void)cli_call_failed(act->choice->cli, what, error, why);
    if (act->failed == MOST_TOLD) {
        cli_error("further refusals are not printed, only counted");
    }
}

/* A refused letter stays where it was. The others are not affected. */
static void count_answer(struct act *act, const struct dead_letter *letter, struct bytes answer)
{
    if (bytes_equal(answer, "ok")) {
        audit_add(&act->done, letter->tid);
    } else if (bytes_equal(answer, "gone")) {
        act->gone++;
    } else {
        print_refusal(act, letter, answer);
    }
}

/* Letters that Redis has not looked at stay in the batch. It looks at the first one at least. */
static void call_once(struct act *act)
{
    const char *ids[BATCH];
    struct command command = {0};
    struct redisReply *reply;
    size_t later = 0;
    int status;

    for (size_t i = 0; i < act->batch_count; i++) {
        ids[i] = act->batch[i].dead_id;
    }
    queue_dead(&command, &act->choice->cli->queue, act->retry, ids, act->batch_count);
    reply = cli_call(act->choice->cli, &command,
                     act->retry ? "cannot retry dead letters" : "cannot drop dead letters",
                     act->batch_count + 1, &status);
    if (!reply) {
        act->status = status;
        act->failed += act->batch_count;
        act->over = true;
        return;
    }
    for (size_t i = 0; i < act->batch_count; i++) {
        struct bytes answer = fields_value(reply->element[i + 1]);
        if (i > 0 && bytes_equal(answer, "later")) {
            act->batch[later++] = act->batch[i];
        } else {
            count_answer(act, &act->batch[i], answer);
        }
    }
    freeReplyObject(reply);
    act->batch_count = later;
}

static void act_on_batch(struct act *act)
{
    while (act->batch_count > 0 && !act->over) {
        call_once(act);
    }
}

static bool act_on(struct act *act, const struct dead_letter *letter)
{
    act->batch[act->batch_count++] = *letter;
    if (act->batch_count == BATCH) {
        act_on_batch(act);
    }
    return !act->over;
}

static bool act_on_row(void *context, const struct redisReply *row)
{
    struct dead_letter letter = dead_letter(row);

    return act_on(context, &letter);
}

static int print_result(const struct act *act)
{
    if (act->choice->options->json) {
        return output_json(json_pack("{s:s, s:I, s:I, s:I, s:I}", "action", verb(act), "done",
                                     (json_int_t)act->done.count, "gone", (json_int_t)act->gone,
                                     "failed", (json_int_t)act->failed, "not_found",
                                     (json_int_t)act->choice->missing),
                           true);
    }
    /* cli_flush reports failures */
    (void)printf("%s %zu dead letter%s", act->retry ? "retried" : "dropped", act->done.count,
                 act->done.count == 1 ? "" : "s");
    if (act->gone > 0) {
        (void)printf(", %zu were gone", act->gone);
    }
    if (act->failed > 0) {
        (void)printf(", %zu failed", act->failed);
    }
    (void)puts("");
    return EX_OK;
}

static void record_done(struct act *act)
{
    act->done.event = act->retry ? "operator-dead-retry" : "operator-dead-drop";
    if (act->done.count > 0) {
        audit_record(act->choice->cli, &act->done, "%s %zu dead letter%s",
                     act->retry ? "retried" : "dropped", act->done.count,
                     act->done.count == 1 ? "" : "s");
    }
}

static int act_on_all(struct act *act)
{
    struct dead_choice *choice = act->choice;
    int status = EX_OK, printed;

    if (choice->named) {
        size_t done = 0;
        while (done < choice->named_count && act_on(act, &choice->named[done])) {
            done++;
        }
    } else {
        status = dead_walk(choice, act_on_row, act);
    }
    act_on_batch(act);
    progress_end(&choice->progress);
    /* also after a failure, for what was done before */
    record_done(act);
    printed = print_result(act);
    if (status != EX_OK) {
        return status;
    }
    return printed != EX_OK ? printed : act->status;
}

/* ---- dry run and confirmation */

struct count {
    size_t letters;
    bool failed;
    struct dead_table table;
    json_t *rows; /* for JSON, instead of the table; or NULL */
};

static bool count_row(void *context, const struct redisReply *row)
{
    struct count *count = context;
    int64_t limit = count->table.limit;

    count->letters++;
    if (!count->rows) {
        (void)dead_table_add(&count->table, row); /* rows beyond the limit are only counted */
    } else if (limit == 0 || count->letters <= (size_t)limit) {
        count->failed |= json_array_append_new(count->rows, rows_json(row)) != 0;
    }
    return true;
}

static int print_dry_run(const struct act *act, struct count *count)
{
    if (act->choice->options->json) {
        json_t *rows = count->rows;
        count->rows = NULL;
        /* json_pack takes the reference with 'o' */
        return output_json(count->failed
                               ? NULL
                               : json_pack("{s:s, s:b, s:I, s:o}", "action", verb(act), "dry_run",
                                           1, "letters", (json_int_t)count->letters, "first", rows),
                           true);
    }
    /* cli_flush reports failures */
    (void)printf("would %s %zu dead letter%s%s\n", verb(act), count->letters,
                 count->letters == 1 ? "" : "s", count->letters > 0 ? ":" : "");
    return count->letters > 0 ? dead_table_print(&count->table) : EX_OK;
}

static int dry_run(const struct act *act)
{
    const struct dead_options *options = act->choice->options;
    struct count count = {.table = {.limit = options->limit, .now_ms = act->choice->now_ms}};
    int status;

    if (options->json) {
        count.rows = json_array();
        if (!count.rows) {
            return cli_no_memory();
        }
    }
    status = dead_walk(act->choice, count_row, &count);
    progress_end(&act->choice->progress);
    status = status == EX_OK ? print_dry_run(act, &count) : status;
    json_decref(count.rows);
    dead_table_free(&count.table);
    return status;
}

static bool only_count(void *context, const struct redisReply *row)
{
    (void)row;
    ++*(size_t *)context;
    return true;
}

/* Asks before it drops letters that were selected by filters. Letters that were named need no
 * confirmation. */
static int confirm(struct dead_choice *choice)
{
    const struct cli *cli = choice->cli;
    char answer[16];
    size_t letters = 0;
    int status;

    if (choice->options->yes || choice->named) {
        return EX_OK;
    }
    status = dead_walk(choice, only_count, &letters);
    progress_end(&choice->progress);
    if (status != EX_OK || letters == 0) {
        return status;
    }
    if (isatty(STDIN_FILENO) != 1) {
        return cli_usage(cli, "this would delete %zu dead letter%s for good; to confirm, add --yes",
                         letters, letters == 1 ? "" : "s");
    }
    (void)fprintf(stderr, "Drop %zu dead letter%s of %s for good? [y/N] ", letters,
                  letters == 1 ? "" : "s", cli->config->queue.name);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y')) {
        return EX_OK;
    }
    cli_error("nothing was dropped");
    return SHOW_NOT_FOUND;
}

int dead_act(struct cli *cli, const struct dead_options *options, bool retry)
{
    struct dead_choice choice = {0};
    struct act act = {.choice = &choice, .retry = retry};
    int status;

    progress_begin(&choice.progress);
    status = dead_choose(cli, options, &choice);
    if (status == EX_OK && options->dry_run) {
        status = dry_run(&act);
    } else if (status == EX_OK) {
        status = retry ? EX_OK : confirm(&choice);
        status = status == EX_OK ? act_on_all(&act) : status;
    }
    dead_choice_free(&choice);
    return status == EX_OK && choice.missing > 0 ? SHOW_NOT_FOUND : status;
}
