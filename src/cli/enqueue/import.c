/*
 * leat import: turns the items of an earlier system in Redis into tasks.
 */
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/hash_slot.h"
#include "cli/enqueue/draft.h"
#include "cli/enqueue/import.h"
#include "cli/enqueue/replica_wait.h"
#include "cli/lib/audit.h"
#include "cli/lib/cli.h"
#include "cli/lib/interrupt.h"
#include "cli/lib/progress.h"
#include "redis/error.h"
#include "view/reply_fields.h"

static const char help[] =
    "Usage: leat import [OPTION]... KEY...\n"
    "       leat import --export FILE [--running] [--json]\n"
    "Move the items of an earlier system from Redis into the queue. KEY is a list\n"
    "(taken from its tail, as RPOP does), a set, or a sorted set (in score order).\n"
    "\n"
    "Each item becomes a task and leaves KEY in the same step. If the command is\n"
    "interrupted, run it again: every item is either in KEY or in the queue. Stop the\n"
    "earlier system's workers first.\n"
    "\n"
    "Options:\n"
    "  --field NAME  make the item the task's payload, its command, or $TASK_NAME\n"
    "                (default: [intake] field)\n"
    "  --lane NAME   put the tasks into this lane; '' means no lane\n"
    "  --unique      drop items that equal an item in the queue\n"
    "  --marks       items end with *UNIXTIME, as in a circular queue: strip the\n"
    "                mark, and delay the task until then\n"
    "  --limit N     move at most N items of all KEYs together\n"
    "  --dry-run     change nothing; print how many items there are, and the first\n"
    "  --export FILE add the tasks and dead letters that leat export has written to\n"
    "                FILE, or to stdin if it is '-'; they keep ids, lanes, due times\n"
    "                and attempts; those that the queue has are left out\n"
    "  --running     with --export: also add tasks that were running\n"
    "  --json        print JSON\n"
    "  -q, -c, -h    see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q mails import --dry-run processing:worker-1 dead\n"
    "  leat -q mails import --marks ring\n"
    "  redis-cli --scan --pattern 'processing:*' | grep '^processing:' |\n"
    "      xargs -d '\\n' leat -q mails import\n"
    "\n"
    "Exit codes:\n"
    "  0   success\n"
    "  1   a KEY does not exist\n"
    "  2   success, but on fewer replicas than [redis] wait_replicas\n"
    "  64  wrong usage\n"
    "  65  a KEY is of another type, belongs to the queue, or is in another hash\n"
    "      slot, and nothing was moved; or a task of FILE was refused\n"
    "  66  FILE cannot be read\n"
    "  69  Redis cannot be reached\n"
    "  74  the output cannot be written\n"
    "  75  the queue is full or Redis is busy; try again later\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong\n"
    "  130 interrupted\n";

#define STEP 500 /* items per call */
#define NOT_FOUND 1
#define WHY_SIZE 512

/* The first failure counts. That a key does not exist says that the others were moved. */
static int fail(struct import *import, int status)
{
    if (import->status == EX_OK || import->status == NOT_FOUND) {
        import->status = status;
    }
    return import->status;
}

/* ---- sources */

/* Returns "list", "set" or "zset", or NULL for another type. */
static const char *known_kind(const char *type)
{
    static const char *const kinds[] = {"list", "set", "zset"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(type, kinds[i]) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

static bool is_own_key(const struct cli *cli, const char *key)
{
    for (size_t i = 0; i < QUEUE_KEYS; i++) {
        if (strcmp(key, cli->queue.keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int take_type(struct import *import, struct source *source, const char *type)
{
    source->kind = known_kind(type);
    if (strcmp(type, "none") == 0) {
        cli_error("%s does not exist; it may have been imported already", source->key.data);
        (void)fail(import, NOT_FOUND);
        return EX_OK;
    }
    if (is_own_key(import->cli, source->key.data)) {
        cli_error("cannot import %s: it belongs to the queue itself", source->key.data);
        return EX_DATAERR;
    }
    if (import->cli->config->redis.cluster &&
        hash_slot_of(source->key.data) != import->cli->config->redis.slot) {
        cli_error(
            "cannot import %s: it is in another hash slot of the Cluster than the queue; copy "
            "it to a key with the same {tag}",
            source->key.data);
        return EX_DATAERR;
    }
    if (!source->kind) {
        cli_error("cannot import %s: it is a %s, not a list, set or sorted set", source->key.data,
                  type);
        return EX_DATAERR;
    }
    return EX_OK;
}

static int find_type(struct import *import, struct source *source)
{
    struct command command = {0};
    enum redis_error error = REDIS_ERROR_OTHER;
    char why[WHY_SIZE] = "";
    struct redisReply *reply;
    int status;

    queue_type(&command, source->key);
    reply = client_call(import->cli->client, &command, &error, why, sizeof why);
    command_free(&command);
    if (!reply) {
        return cli_call_failed(import->cli, "cannot examine a key", error, why);
    }
    status = take_type(import, source, reply->type == REDIS_REPLY_STATUS ? reply->str : "thing");
    freeReplyObject(reply);
    return status;
}

/* Counts the items. For a dry run, also fetches the first ones. */
static int look(struct import *import, struct source *source)
{
    struct command command = {0};
    int status = find_type(import, source);

    if (status != EX_OK || !source->kind) {
        return status;
    }
    queue_preview(&command, source->key, source->kind, import->dry_run ? IMPORT_SHOWN : 0,
                  import->marks);
    source->preview = cli_call(import->cli, &command, "cannot examine a key", 2, &status);
    if (!source->preview) {
        return status;
    }
    source->count = (uint64_t)fields_integer(source->preview->element[1], 0);
    import->total += source->count;
    return EX_OK;
}

/* ---- importing */

static void report_lost(const struct source *source)
{
    cli_error("some of the last items of %s may have been imported: each item is there or in the "
              "queue; run the same command again to continue",
              source->key.data);
}

/* Imports up to `most` items. Returns false if nothing is left to do with the key. */
static bool take_step(struct import *import, struct source *source, uint64_t most)
{
    struct command command = {0};
    struct queue_intake_reply answer = {0};
    struct queue_intake intake = {
        .key = source->key,
        .kind = source->kind,
        .most = (int64_t)most,
        .field = import->field,
        .lane = {import->lane, strlen(import->lane)},
        .unique = import->unique,
        .marks = import->marks,
    };
    struct redisReply *reply;
    int status;

    queue_intake(&command, &import->cli->queue, &intake);
    reply = cli_call(import->cli, &command, "cannot import", 5, &status);
    if (!reply) {
        if (status == EX_UNAVAILABLE) {
            report_lost(source);
        }
        (void)fail(import, status);
        return false;
    }
    if (queue_intake_read(reply, &answer)) {
        (void)fail(import, EX_PROTOCOL);
    }
    freeReplyObject(reply);
    source->taken += (uint64_t)answer.taken;
    source->added += (uint64_t)answer.added;
    source->left = (uint64_t)answer.left;
    import->taken += (uint64_t)answer.taken;
    if (answer.full) {
        progress_end(&import->progress);
        cli_error("the queue is full; %lld items remain in %s", (long long)answer.left,
                  source->key.data);
        (void)fail(import, EX_TEMPFAIL);
    }
    return answer.taken > 0 && answer.left > 0 && !answer.full;
}

/* Imports no more items than there were at the start: a producer may still add some. */
static void take_all(struct import *import, struct source *source)
{
    uint64_t most = source->count;
    bool more = true;

    source->left = source->count;
    while (more && source->taken < most && import->taken < import->limit && !interrupt_came()) {
        uint64_t step = most - source->taken;

        if (step > import->limit - import->taken) {
            step = import->limit - import->taken;
        }
        more = take_step(import, source, step < STEP ? step : STEP);
        progress_draw(&import->progress, import->taken, import->taken,
                      import->total < import->limit ? import->total : import->limit);
    }
}

static bool may_go_on(const struct import *import)
{
    return (import->status == EX_OK || import->status == NOT_FOUND) && !interrupt_came() &&
           import->taken < import->limit;
}

static void record(const struct import *import)
{
    struct audit done = {.event = "operator-import"};

    for (size_t i = 0; i < import->count; i++) {
        done.count += import->sources[i].added;
    }
    if (import->taken > 0) {
        audit_record(import->cli, &done, "moved %llu item%s into the queue",
                     (unsigned long long)import->taken, import->taken == 1 ? "" : "s");
    }
}

/* Examines all keys before it imports anything. */
static int import_all(struct import *import)
{
    int status = cli_connect(import->cli);

    for (size_t i = 0; i < import->count && status == EX_OK; i++) {
        status = look(import, &import->sources[i]);
    }
    if (status != EX_OK) {
        return status;
    }
    if (import->dry_run) {
        status = import_show(import);
        return status != EX_OK ? status : import->status;
    }
    interrupt_catch();
    progress_begin(&import->progress);
    for (size_t i = 0; i < import->count; i++) {
        if (import->sources[i].kind && may_go_on(import)) {
            take_all(import, &import->sources[i]);
        }
    }
    progress_end(&import->progress);
    record(import);
    status = import_report(import);
    status = status == EX_OK ? import->status : status;
    if (status == EX_OK || status == NOT_FOUND) {
        int replicated = cli_wait_replicas(import->cli, import->taken);
        status = replicated != EX_OK ? replicated : status;
    }
    return (status == EX_OK || status == NOT_FOUND) && interrupt_came() ? INTERRUPT_STATUS : status;
}

/* ---- options */

/* An item may become the input, the command or a variable of a task, but no field that leat itself
 * acts on. */
static bool can_be_item(const char *name)
{
    const struct task_field field = {.name = bytes_of(name)};

    return strcmp(name, "payload") == 0 || strcmp(name, "command") == 0 ||
           task_field_is_variable(&field);
}

/* Refuses to make tasks that every worker would refuse. */
static int check_field(struct import *import)
{
    struct draft draft = {0};
    char reason[256];
    bool fine;
    int status = cli_load(import->cli);

    if (status == EX_OK && import->cli->config->security.signatures == CONFIG_SIGNATURES_REQUIRED) {
        cli_error(
            "cannot import: workers would refuse the tasks, since import does not sign them and "
            "%s has signatures = required",
            import->cli->config->path);
        return EX_CONFIG;
    }
    if (status != EX_OK) {
        return status;
    }
    if (!import->field) {
        import->field = import->cli->config->intake.field;
    }
    if (!can_be_item(import->field)) {
        return cli_usage(import->cli,
                         "--field: an item cannot become %s; give payload, command or the name of "
                         "a variable",
                         import->field);
    }
    if (draft_add_text(&draft, import->field, "x") != 0) {
        return cli_no_memory();
    }
    fine = draft_check(&draft, &import->cli->config->task, reason, sizeof reason);
    draft_free(&draft);
    if (fine) {
        return EX_OK;
    }
    return cli_usage(
        import->cli,
        "workers would refuse tasks whose %s is the item: %s; choose another field with "
        "--field",
        import->field, reason);
}

static int name_sources(struct import *import, char **keys, size_t count)
{
    import->sources = calloc(count, sizeof *import->sources);
    if (!import->sources) {
        return cli_no_memory();
    }
    import->count = count;
    for (size_t i = 0; i < count; i++) {
        import->sources[i].key = bytes_of(keys[i]);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(keys[i], keys[j]) == 0) {
                return cli_usage(import->cli, "%s is given twice", keys[i]);
            }
        }
    }
    return EX_OK;
}

/* Imports an export, which has all that the other options would say. */
static int import_file(const struct import *import, const char *file, bool running, bool has_more)
{
    if (!file) {
        return cli_usage(import->cli, "--running needs --export");
    }
    if (has_more || import->field || *import->lane || import->unique || import->marks ||
        import->dry_run) {
        return cli_usage(import->cli,
                         "--export takes no KEY, and only --running and --json beside it");
    }
    return import_export(import->cli, file, running, import->json);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct import import = {.cli = cli, .lane = ""};
    int64_t limit = INT64_MAX;
    const char *file = NULL;
    bool running = false;
    const struct cli_option options[] = {
        {"--field", .text = &import.field},        {"--lane", .text = &import.lane},
        {"--unique", .flag = &import.unique},      {"--marks", .flag = &import.marks},
        {"--limit", .number = &limit, .least = 1}, {"--dry-run", .flag = &import.dry_run},
        {"--json", .flag = &import.json},          {"--export", .text = &file},
        {"--running", .flag = &running},           {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, options);

    import.limit = (uint64_t)limit;
    if (status == EX_OK && (file || running)) {
        return import_file(&import, file, running, argc > optind || limit != INT64_MAX);
    }
    if (status == EX_OK && optind >= argc) {
        status = cli_usage(cli, "missing operand: give keys");
    }
    status = status == EX_OK ? check_field(&import) : status;
    status =
        status == EX_OK ? name_sources(&import, argv + optind, (size_t)(argc - optind)) : status;
    status = status == EX_OK ? import_all(&import) : status;
    for (size_t i = 0; i < import.count; i++) {
        if (import.sources[i].preview) {
            freeReplyObject(import.sources[i].preview);
        }
    }
    free(import.sources);
    return status;
}

const struct subcommand import_command = {
    "import", "Move items of Redis lists and sets into the queue", help, run};
