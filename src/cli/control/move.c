/*
 * leat move and leat now: waiting tasks go to another lane or queue, or are due at once.
 */
#include <stdio.h>
#include <string.h>

#include "cli/control/change.h"
#include "config/file/load.h"
#include "config/table.h"
#include "config/types/value.h"

static const char move_help[] =
    "Usage: leat move [OPTION]... ID...\n"
    "Move waiting tasks to another lane or queue. ID is a task's id, or its label\n"
    "(--id); '-' reads ids from stdin, one per line.\n"
    "\n"
    "A task keeps its fields, attempts, history and due time. In another queue it\n"
    "gets a new id, which is printed. Signed tasks cannot be moved.\n"
    "\n"
    "Options:\n"
    "  --lane NAME  move the tasks to this lane; '' for none\n"
    "  --to QUEUE   move the tasks to this queue of the same Redis; in a Cluster, its\n"
    "               stream must have the same {tag}\n"
    "  --json       print one JSON object per line: id, state, tid, worker\n"
    "  -q, -c, -h   see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails move --lane archive 1769860800000-0\n"
    "  leat -q thumbnails list --lane old --limit 0 --json |\n"
    "      jq -r '.[].tid' | leat -q thumbnails move --to bulk -\n"
    "\n"
    "Exit codes:\n"
    "  0   every task is where it should be\n"
    "  64  wrong usage\n"
    "  65  a task runs, is a dead letter or signed, or may not be moved like this\n"
    "  66  a task was not found, or stdin cannot be read\n"
    "  69  Redis cannot be reached\n"
    "  74  the output cannot be written\n"
    "  75  the other queue is full, or Redis is busy; try again later\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong\n";

static const char now_help[] =
    "Usage: leat now [OPTION]... ID...\n"
    "Make delayed and retried tasks due at once. ID is a task's id, or its label\n"
    "(--id); '-' reads ids from stdin, one per line.\n"
    "\n"
    "The tasks may start before their time; limits and pauses hold as for others.\n"
    "\n"
    "Options:\n"
    "  --json      print one JSON object per line: id, state, tid, worker\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails now order-17\n"
    "  leat -q thumbnails list --state retrying --limit 0 --json |\n"
    "      jq -r '.[].tid' | leat -q thumbnails now -\n"
    "\n"
    "Exit codes:\n"
    "  0   every task is due\n"
    "  64  wrong usage\n"
    "  65  a task runs, is a dead letter, or waits for the end of another one\n"
    "  66  a task was not found, or stdin cannot be read\n" CLI_EXITS;

/* True if both configurations name the same database of the same server. */
static bool is_same_server(const struct config *a, const struct config *b)
{
    static const char *const keys[] = {"host",      "port",   "socket", "db",
                                       "sentinels", "master", "cluster"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct table_row *row = table_find("redis", keys[i]);
        if (row && !value_equal(a, b, row)) {
            return false;
        }
    }
    return true;
}

/* Loads the queue that is named as -q names one. Returns 0, or an exit status after printing the
 * error. */
static int load_other(struct cli *cli, const char *name, struct cli *other)
{
    int status = cli_load(cli);

    other->subcommand = cli->subcommand;
    other->source = cli->source;
    other->source.queue = name;
    if (cli->source.file) {
        /* the server is that of FILE, and the other queue has a file, too */
        other->source.file = other->source.variable = NULL;
    }
    status = status == EX_OK ? cli_load(other) : status;
    if (status != EX_OK) {
        return status;
    }
    if (!is_same_server(cli->config, other->config)) {
        cli_error(
            "cannot move tasks to %s: its configuration names another Redis or database; if "
            "it is the same, write the same address, otherwise use leat export and leat import",
            name);
        return EX_CONFIG;
    }
    if (cli->config->redis.cluster && cli->config->redis.slot != other->config->redis.slot) {
        cli_error("cannot move tasks to %s: it is in another hash slot of the Cluster; only queues "
                  "whose streams have the same {tag} share one",
                  name);
        return EX_DATAERR;
    }
    return EX_OK;
}

static int move_to(const struct change *change, const char *queue, char *const *ids)
{
    struct change move = *change;
    struct cli other = {0};
    char done[256], after[256];
    int status = load_other(change->cli, queue, &other);

    if (status == EX_OK && strcmp(other.queue.keys[QUEUE_KEY_STREAM],
                                  change->cli->queue.keys[QUEUE_KEY_STREAM]) == 0) {
        status = cli_usage(change->cli, "--to: %s is the queue that the tasks are in", queue);
    }
    if (status == EX_OK) {
        move.to = &other.queue;
        move.done = done;
        (void)snprintf(done, sizeof done, "moved as %%s to queue %s", queue);
        (void)snprintf(after, sizeof after, " to queue %s", queue);
        status = change_tasks(&move, ids, "moved", after);
    }
    queue_free(&other.queue);
    config_free(other.config);
    return status;
}

static int run_move(struct cli *cli, int argc, char **argv)
{
    struct change change = {.cli = cli,
                            .verb = "move",
                            .event = "operator-move",
                            .state = "moved",
                            .done = "moved",
                            .same = "is there already",
                            .due = ""};
    const char *lane = NULL, *queue = NULL;
    char after[256] = "";
    const struct cli_option options[] = {
        {"--lane", .text = &lane}, {"--to", .text = &queue}, {"--json", .flag = &change.json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    if (optind == argc || (!lane && !queue)) {
        return cli_usage(cli, optind == argc ? "missing operand: give task ids, or '-'"
                                             : "give --lane or --to");
    }
    if (lane) {
        struct bytes value = *lane ? bytes_of(lane) : (struct bytes){NULL, 0};
        if (draft_add(&change.fields, bytes_of("lane"), value) != 0) {
            return cli_no_memory();
        }
        (void)snprintf(after, sizeof after, *lane ? " to lane %s" : " to no lane", lane);
    }
    status = queue ? move_to(&change, queue, argv + optind)
                   : change_tasks(&change, argv + optind, "moved", after);
    draft_free(&change.fields);
    return status;
}

static int run_now(struct cli *cli, int argc, char **argv)
{
    struct change change = {.cli = cli,
                            .verb = "start",
                            .event = "operator-now",
                            .state = "due",
                            .done = "due now",
                            .same = "was due already",
                            .due = "0"};
    const struct cli_option options[] = {{"--json", .flag = &change.json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    return optind == argc ? cli_usage(cli, "missing operand: give task ids, or '-'")
                          : change_tasks(&change, argv + optind, "made", " due");
}

const struct subcommand move_command = {"move", "Move waiting tasks to another lane or queue",
                                        move_help, run_move};
const struct subcommand now_command = {"now", "Make delayed tasks due at once", now_help, run_now};
