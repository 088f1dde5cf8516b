/*
 * leat logs: locates a task and its output.
 */
#include "cli/logs/logs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/lib/rows.h"
#include "cli/lib/text.h"
#include "cli/show/ended.h"
#include "cli/show/expand_id.h"
#include "cli/show/history.h"
#include "cli/show/result.h"
#include "cli/show/show.h"
#include "config/file/service.h"
#include "config/types/outputs.h"
#include "queue/entry_id.h"
#include "queue/result_streams.h"
#include "view/reply_fields.h"

#define ASK_NS CLOCK_NS_PER_S /* between two questions whether the task has ended */

static const char help[] =
    "Usage: leat logs [OPTION]... ID\n"
    "Show the output of a task, of all its attempts on this host. It comes from this\n"
    "host's journal, or from the task's file if [output] to is file. With -f, output\n"
    "of a task that runs on another host comes through Redis, as in leat attach. ID\n"
    "is the task's id or its label (--id).\n"
    "\n"
    "On a terminal, control characters are escaped and stderr is coloured. Elsewhere\n"
    "the bytes are those of the task, and its stderr goes to stderr.\n"
    "\n"
    "Options:\n"
    "  -f, --follow         continue as the task writes, until it has ended\n"
    "  -n, --lines N        show only the last N lines\n"
    "  -t, --times          print time, attempt and stream before each line\n"
    "  --attempt N          show only attempt N\n"
    "  --json               print one JSON object per line\n"
    "  -D, --directory DIR  read the journal files in DIR, such as another host's\n"
    "  -q, -c, -h           see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails logs -f 1769860800000-0\n"
    "  leat -q thumbnails logs -t -n 20 order-17\n"
    "\n"
    "Exit codes:\n"
    "  0   success\n"
    "  1   no output was found\n"
    "  64  wrong usage\n"
    "  66  the folder or the file cannot be opened\n"
    "  74  the journal cannot be read, or the output cannot be written\n"
    "  77  you may not read the journal\n"
    "  78  the configuration is wrong\n";

#define PAUSE_MS 200

/* ---- the task */

/* Adds the host of a consumer, host:pid:nonce, unless it is there. */
static void add_host(void *context, struct bytes worker)
{
    struct buffer *hosts = context;
    const char *colon = memchr(worker.data, ':', worker.size);
    size_t size = colon ? (size_t)(colon - worker.data) : worker.size;

    if (size == 0 || (hosts->size > 0 && memmem(hosts->data, hosts->size, worker.data, size))) {
        return;
    }
    /* a failed append marks the buffer */
    if (hosts->size > 0) {
        (void)buffer_append_text(hosts, ", ");
    }
    (void)text_append(hosts, worker.data, size);
}

static void read_row(struct logs_task *task, const struct redisReply *row)
{
    struct bytes state = fields_bytes(row, "state"), tid = fields_bytes(row, "tid");

    task->live = !bytes_equal(state, "dead") && !bytes_equal(state, "done");
    if (tid.size > 0) {
        free(task->tid);
        task->tid = strndup(tid.data, tid.size);
        task->found = true;
    }
    task->attempts = fields_number(row, "attempts", 0);
    add_host(&task->hosts, fields_bytes(row, "worker"));
}

static void read_task(struct logs_task *task, const struct redisReply *reply)
{
    read_row(task, reply->element[2]);
    history_workers(fields_value(reply->element[4]), add_host, &task->hosts);
}

/* Locates the task. If Redis cannot be reached, takes the id for the task's own. */
static int find_task(struct cli *cli, const char *id, struct logs_task *task)
{
    enum redis_error error = REDIS_ERROR_NONE;
    struct expanded_id expanded;
    struct redisReply *reply;
    char why[512];
    int status = EX_OK;

    *task = (struct logs_task){.tid = strdup(id), .live = true};
    if (cli_try_connect(cli, &error, why, sizeof why) != 0) {
        cli_error("cannot ask Redis about the task: %s", why);
    } else {
        reply = NULL;
        status = expand_id(cli, id, &expanded);
        if (status == EX_USAGE) {
            return status;
        }
        if (status == EX_OK) {
            reply = show_locate_quietly(cli, expanded.id, &status);
        }
        task->known = reply || status == EX_OK;
        task->live = reply || !task->known;
        if (reply) {
            read_task(task, reply);
        }
        freeReplyObject(reply);
    }
    return task->tid ? EX_OK : cli_no_memory();
}

static bool take_ended(void *context, const struct redisReply *row)
{
    read_row(context, row);
    return false;
}

static bool take_labelled(void *context, const struct redisReply *row)
{
    struct logs_task *task = context;
    bool is_found = bytes_equal(fields_bytes(row, "id"), task->tid);

    if (is_found) {
        read_row(task, row);
    }
    return !is_found;
}

/* Takes the newest ended task of the queue's history with that label for the task, or else that of
 * the journal, or else the newest dead letter, or else the ended task whose id begins so. The
 * history has the tasks of all hosts, but may be short. Returns 0, or EX_USAGE after printing that
 * several ids begin so. */
static int resolve_ended(struct cli *cli, struct logs_task *task,
                         const struct logs_options *options)
{
    bool asks = cli->client && task->known, found;
    int status = asks ? rows_walk(cli, "done", false, take_labelled, task) : EX_OK;
    struct redisReply *reply = NULL;

    if (!task->found) {
        logs_resolve_label(cli, task, options);
    }
    if (asks && status == EX_OK && !task->found) {
        reply = show_locate_labelled(cli, task->tid, &status);
    }
    if (reply) {
        read_task(task, reply);
    }
    freeReplyObject(reply);
    if (asks && status == EX_OK && !task->found) {
        status = ended_find(cli, task->tid, take_ended, task, &found);
    }
    return status == EX_USAGE ? status : EX_OK;
}

static void free_task(struct logs_task *task)
{
    free(task->tid);
    buffer_free(&task->hosts);
}

/* True if this is the row of a task that runs on another host. Names of workers, host:pid:nonce,
 * have
 * '_' for characters that need escaping. */
static bool runs_elsewhere(const struct redisReply *row)
{
    struct bytes worker = fields_bytes(row, "worker");
    const char *colon = worker.size > 0 ? memchr(worker.data, ':', worker.size) : NULL;
    char host[HOST_NAME_MAX + 1] = "";

    if (!colon || !bytes_equal(fields_bytes(row, "state"), "running") ||
        gethostname(host, sizeof host) != 0) {
        return false;
    }
    for (char *at = host; *at; at++) {
        *at = isalnum((unsigned char)*at) || *at == '-' || *at == '.' ? *at : '_';
    }
    return !bytes_equal((struct bytes){worker.data, (size_t)(colon - worker.data)}, host);
}

/* Asks Redis whether the task has ended. After a failure the journal may still tell. */
static void ask(struct cli *cli, struct logs_task *task)
{
    enum redis_error error;
    struct redisReply *reply;
    char why[512];
    int status;

    if (!cli->client && cli_try_connect(cli, &error, why, sizeof why) != 0) {
        return;
    }
    reply = show_locate_live(cli, task->tid, &status);
    task->known = reply || status == EX_OK;
    task->live = reply || !task->known;
    task->elsewhere = reply && runs_elsewhere(reply->element[2]);
    task->refused = !task->known && status != EX_UNAVAILABLE && status != EX_TEMPFAIL;
    freeReplyObject(reply);
    if (!task->known) {
        cli_disconnect(cli);
    }
}

bool logs_has_ended(struct cli *cli, struct logs_task *task)
{
    if (task->live && !task->refused && clock_boot_ns() >= task->ask_ns) {
        ask(cli, task);
        task->ask_ns = clock_boot_ns() + ASK_NS;
    }
    return !task->live;
}

/* ---- the command */

static void on_result(void *context, const struct queue_entry *entry)
{
    struct logs_task *task = context;
    struct result result;

    result_read(entry->fields, &result);
    task->attempts = result.attempt > 0 ? result.attempt : 0;
    add_host(&task->hosts, result.worker);
}

/* Finds the hosts and attempts of a task that has ended, in its dead letter or its result, or the
 * last host in the queue's history. */
static void find_attempts(struct cli *cli, struct logs_task *task)
{
    const struct queue_source source = {QUEUE_RESULT, task->tid, QUEUE_FROM_START};
    struct command command = {0};
    enum redis_error error;
    struct redisReply *reply;
    char why[512];
    int status;
    bool found;

    if (task->live || !task->known) {
        return;
    }
    reply = show_locate_quietly(cli, task->tid, &status);
    if (reply) {
        read_task(task, reply);
    } else if (status == EX_OK) {
        queue_read(&command, &cli->queue, &source, 1, 1, 0);
        reply = client_call(cli->client, &command, &error, why, sizeof why);
        /* without a readable result the hosts stay unknown */
        if (reply) {
            (void)queue_read_entries(&cli->queue, reply, on_result, task);
        }
        command_free(&command);
    }
    freeReplyObject(reply);
    if (task->hosts.size == 0 && status == EX_OK && entry_is_task(task->tid)) {
        /* a failure was printed, and the hosts stay unknown */
        (void)ended_find(cli, task->tid, take_ended, task, &found);
    }
}

/* True if the task ran, but only on other hosts. */
static bool ran_elsewhere(const struct logs_task *task)
{
    char host[256] = "";

    (void)gethostname(host, sizeof host - 1); /* without a name, this host counts as another one */
    return task->hosts.size > 0 && !memmem(task->hosts.data, task->hosts.size, host, strlen(host));
}

/* Prints why there is no output. of: "" or "attempt N of ". */
static void explain(const struct cli *cli, const struct logs_task *task, const char *where,
                    const char *of)
{
    if (ran_elsewhere(task)) {
        cli_error("%s has no output of %stask %s: it ran on %.*s; run leat logs there", where, of,
                  task->tid, (int)task->hosts.size, task->hosts.data);
    } else if (task->hosts.size == 0 && task->known && task->live) {
        cli_error("%s has no output of %stask %s: it has not started", where, of, task->tid);
    } else if (task->no_journal) {
        cli_error("%s has no output of %stask %s: there is no journal here; use -D for a folder "
                  "with journal files",
                  where, of, task->tid);
    } else if (task->hosts.size > 0) {
        cli_error("%s has no output of %stask %s: it has written nothing yet%s", where, of,
                  task->tid,
                  cli->config->output.to == CONFIG_OUTPUT_JOURNAL ||
                          cli->config->output.to == CONFIG_OUTPUT_FILE
                      ? ", or its output was removed"
                      : ", or its output is not kept; see [output] to");
    } else if (task->known && !entry_is_task(task->tid)) {
        cli_error("%s has no output of task %s: no task of the queue, its history and its dead "
                  "letters, and no record in this host's journal has this label; use the id of "
                  "the task",
                  where, task->tid);
    } else {
        cli_error("%s has no output of %stask %s: it has written nothing, ran on another host, or "
                  "does not exist",
                  where, of, task->tid);
    }
}

static int report_nothing(struct cli *cli, struct logs_task *task,
                          const struct logs_options *options, const char *where)
{
    char of[48] = "";

    find_attempts(cli, task);
    if (task->attempts > 0 && options->attempt > task->attempts) {
        cli_error("task %s has no attempt %lld: its last one is attempt %lld", task->tid,
                  (long long)options->attempt, (long long)task->attempts);
        return LOGS_NOTHING;
    }
    if (options->attempt > 0) {
        (void)snprintf(of, sizeof of, "attempt %lld of ", (long long)options->attempt);
    }
    explain(cli, task, where, of);
    return LOGS_NOTHING;
}

/* Opens the task's file, below this folder of logs if none is configured. Returns the descriptor,
 * or -1 with errno. A fifo must not block the command. */
static int open_file_below(const struct cli *cli, const struct logs_task *task, const char *logs)
{
    struct buffer path = BUFFER_INIT;
    int fd = -1, error = ENOENT;

    if (outputs_file(cli->config, logs, task->tid, &path) == 0) {
        fd = open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
        error = errno;
    }
    buffer_free(&path);
    errno = error;
    return fd;
}

/* The task may have run before the queue had a user of its own. */
static int open_file(const struct cli *cli, const struct logs_task *task)
{
    struct buffer own = BUFFER_INIT;
    int fd = -1, error = ENOENT;

    if (service_folder(SERVICE_LOGS, cli->config->path, &own) == 0) {
        fd = open_file_below(cli, task, own.data);
        error = errno;
    }
    buffer_free(&own);
    errno = error;
    return fd < 0 && error == ENOENT ? open_file_below(cli, task, NULL) : fd;
}

/* Opens the task's file. With follow, waits until the task creates it, unless Redis cannot be
 * reached. */
static int find_file(struct cli *cli, struct logs_task *task, const struct logs_options *options)
{
    bool waits = options->follow && task->known;
    int fd;

    while ((fd = open_file(cli, task)) < 0 && errno == ENOENT && waits &&
           !logs_has_ended(cli, task) && !task->elsewhere) {
        (void)poll(NULL, 0, PAUSE_MS); /* a signal may cut the pause short */
    }
    return fd >= 0 ? fd : open_file(cli, task);
}

static int show_file(struct cli *cli, struct logs_task *task, const struct logs_options *options,
                     int fd)
{
    if (options->times || options->attempt != 0) {
        cli_error("--times and --attempt need the journal; the output of this queue is in files");
        return EX_USAGE;
    }
    return logs_show_file(cli, task, options, fd);
}

/* Says where the output was looked for. Returns LOGS_NOTHING. */
static int report_missing(struct cli *cli, struct logs_task *task,
                          const struct logs_options *options, bool is_file)
{
    struct buffer folder = BUFFER_INIT, own = BUFFER_INIT;
    const char *where = options->directory ? options->directory
                        : task->no_journal ? "this host"
                                           : "this host's journal",
               *logs;
    int status;

    logs = service_folder(SERVICE_LOGS, cli->config->path, &own) == 0 ? own.data : NULL;
    if (is_file && outputs_folder(cli->config, logs, &folder) == 0) {
        where = folder.data;
    }
    status = report_nothing(cli, task, options, where);
    buffer_free(&folder);
    buffer_free(&own);
    return status;
}

static int show(struct cli *cli, struct logs_task *task, const struct logs_options *options)
{
    bool is_file = cli->config->output.to == CONFIG_OUTPUT_FILE && !options->directory;
    int fd, status = EX_OK;

    if (!task->found && entry_may_be_label(task->tid)) {
        status = resolve_ended(cli, task, options);
    }
    if (!task->tid) {
        return cli_no_memory();
    }
    if (status != EX_OK) {
        return status;
    }
    fd = is_file ? find_file(cli, task, options) : -1;
    if (fd >= 0) {
        status = show_file(cli, task, options, fd);
        (void)close(fd); /* closing a descriptor that was only read loses nothing */
    } else if (is_file && errno != ENOENT) {
        status = errno == EACCES ? EX_NOPERM : EX_NOINPUT;
        cli_error("cannot open the output file: %s", strerror(errno));
        return status;
    } else {
        /* the task may have run before output went to files */
        status = logs_show_journal(cli, task, options);
    }
    if (status == LOGS_ELSEWHERE) {
        return logs_follow_elsewhere(cli, task, options);
    }
    return status == LOGS_NOTHING ? report_missing(cli, task, options, is_file) : status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct logs_options options = {.lines = LOGS_ALL};
    struct logs_task task;
    const struct cli_option known[] = {{"--follow", 'f', .flag = &options.follow},
                                       {"--lines", 'n', .number = &options.lines},
                                       {"--times", 't', .flag = &options.times},
                                       {"--attempt", .number = &options.attempt, .least = 1},
                                       {"--json", .flag = &options.json},
                                       {"--directory", 'D', .text = &options.directory},
                                       {0}};
    int status = cli_options(cli, argc, argv, CLI_ONE_TASK, known);

    status = status == EX_OK ? cli_load(cli) : status;
    if (status != EX_OK) {
        return status;
    }
    status = find_task(cli, argv[optind], &task);
    status = status == EX_OK ? show(cli, &task, &options) : status;
    free_task(&task);
    return status;
}

const struct subcommand logs_command = {"logs", "Show the output of a task", help, run};
