/*
 * leat export: writes all tasks of a queue as JSON, one per line, for leat import --export.
 */
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/units.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "cli/lib/rows.h"
#include "cli/show/show.h"
#include "queue/calls.h"
#include "redis/value.h"
#include "view/reply_fields.h"
#include "view/reply_json.h"

static const char help[] =
    "Usage: leat export [OPTION]...\n"
    "Write the tasks of the queue that wait, run or are dead letters, one JSON object\n"
    "per line, with their exact bytes. 'leat import --export FILE' reads them. The\n"
    "queue stays as it is.\n"
    "\n"
    "Tasks move while leat reads. For an exact picture, first run\n"
    "'leat pause --wait'.\n"
    "\n"
    "Options:\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails export >thumbnails.jsonl\n"
    "\n"
    "Exit codes:\n"
    "  0   success\n"
    "  64  wrong usage\n"
    "  65  a task is damaged and was left out\n" CLI_EXITS;

struct export
{
    struct cli *cli;
    int status; /* of the first failure */
};

static bool stop(struct export *export, int status)
{
    export->status = status;
    return false;
}

/* Adds {"name", "value"} to the array. */
static void push(json_t **array, const char *name, struct bytes value)
{
    json_t *pair = json_pack("{s:s}", "name", name);

    output_put_bytes(&pair, "value", value);
    output_push(array, pair);
}

static void push_number(json_t **array, const char *name, int64_t number)
{
    char text[UNITS_INTEGER_SIZE];

    push(array, name, (struct bytes){text, units_format_integer(number, text)});
}

/* What leat knows of a task that waits or runs. An attempt that runs is none yet. */
static json_t *known_json(const struct redisReply *row, struct bytes history)
{
    json_t *array = json_array();
    int64_t attempts = fields_number(row, "attempts", 0);

    push(&array, "leat.tid", fields_bytes(row, "tid"));
    push_number(&array, "leat.attempts",
                bytes_equal(fields_bytes(row, "state"), "running") ? attempts - 1 : attempts);
    push_number(&array, "leat.crashes", fields_number(row, "crashes", 0));
    push_number(&array, "leat.enqueued", fields_number(row, "enqueued_ms", 0));
    push_number(&array, "leat.fence", fields_number(row, "fence", 0));
    if (fields_number(row, "waits", 0) > 0) {
        push_number(&array, "leat.waits", fields_number(row, "waits", 0));
    }
    if (fields_number(row, "spared", 0) > 0) {
        push_number(&array, "leat.spared", fields_number(row, "spared", 0));
    }
    if (history.size > 0) {
        push(&array, "leat.history", history);
    }
    return array;
}

/* A task that ended or moved after it was listed is told as it is now, or not at all. */
static bool export_task(void *context, const struct redisReply *listed)
{
    struct export *export = context;
    char tid[48];
    struct redisReply *found;
    const struct redisReply *row;
    struct bytes state;
    json_t *object;

    bytes_copy(fields_bytes(listed, "tid"), tid, sizeof tid);
    found = show_locate_live(export->cli, tid, &export->status);
    if (!found) {
        return export->status == EX_OK;
    }
    row = found->element[2];
    state = fields_bytes(row, "state");
    object = json_pack("{s:I}", "due_ms", (json_int_t)fields_number(row, "due_ms", 0));
    output_put_bytes(&object, "tid", fields_bytes(row, "tid"));
    output_put_bytes(&object, "state", bytes_equal(state, "claimed") ? bytes_of("ready") : state);
    output_put(&object, "fields", fields_pairs_json(found->element[3]));
    output_put(&object, "leat", known_json(row, fields_value(found->element[4])));
    freeReplyObject(found);
    export->status = output_json(object, false);
    return export->status == EX_OK;
}

/* The values of an entry from `first` to before `end`, as pairs. */
static json_t *pairs_json(const struct redisReply *values, size_t first, size_t end)
{
    json_t *array = json_array();

    for (size_t i = first; i + 1 < end; i += 2) {
        json_t *pair = json_object();
        output_put_bytes(&pair, "name", fields_value(values->element[i]));
        output_put_bytes(&pair, "value", fields_value(values->element[i + 1]));
        output_push(&array, pair);
    }
    return array;
}

static json_t *letter_json(const struct redisReply *values, const struct dead_letter *letter)
{
    size_t count = values->elements;
    int64_t own;
    json_t *object;

    if (count < 2 || count % 2 != 0 ||
        !bytes_equal(fields_value(values->element[count - 2]), "leat.fields") ||
        value_number_at(values, count - 1, &own) != 0 || own > (int64_t)count / 2 - 1) {
        return NULL;
    }
    object = json_pack("{s:s, s:s, s:s}", "tid", letter->tid, "state", "dead", "dead_id",
                       letter->dead_id);
    output_put(&object, "fields", pairs_json(values, 0, (size_t)own * 2));
    output_put(&object, "leat", pairs_json(values, (size_t)own * 2, count - 2));
    return object;
}

/* A dead letter is exported as its entry is. */
static bool export_letter(void *context, const struct redisReply *listed)
{
    struct export *export = context;
    struct dead_letter letter = dead_letter(listed);
    struct command command = {0};
    enum redis_error error = REDIS_ERROR_OTHER;
    struct redisReply *reply;
    const struct redisReply *values;
    char why[512] = "";
    json_t *object;

    queue_dead_entry(&command, &export->cli->queue, letter.dead_id);
    reply = client_call(export->cli->client, &command, &error, why, sizeof why);
    command_free(&command);
    if (!reply) {
        return stop(export, cli_call_failed(export->cli, "cannot read a dead letter", error, why));
    }
    values = value_at(value_at(reply, 0), 1);
    if (!values) {
        freeReplyObject(reply);
        return true; /* it was retried or dropped */
    }
    object = letter_json(values, &letter);
    freeReplyObject(reply);
    if (!object) {
        cli_error("dead letter %s is damaged and was left out; see leat doctor", letter.dead_id);
        export->status = EX_DATAERR;
        return true;
    }
    export->status = output_json(object, false);
    return export->status == EX_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
    /* a follow-up comes after the holder of its key */
    static const char *const lists[] = {"running", "ready", "waiting", "following"};
    struct export export = {.cli = cli};
    const struct cli_option options[] = {{0}};
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);

    status = status == EX_OK ? cli_connect(cli) : status;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && status == EX_OK; i++) {
        status = rows_walk(cli, lists[i], false, export_task, &export);
        status = status == EX_OK ? export.status : status;
    }
    status = status == EX_OK ? rows_walk(cli, "dead", false, export_letter, &export) : status;
    return status == EX_OK ? export.status : status;
}

const struct subcommand export_command = {"export", "Write all tasks of the queue as JSON", help,
                                          run};
