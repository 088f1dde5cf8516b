/*
 * A task on the command line: its options, its command and its payload, for leat enqueue and leat
 * run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/units.h"
#include "cli/enqueue/enqueue.h"
#include "queue/calls.h"
#include "view/moment.h"
#include "view/reply_fields.h"

/* ---- options */

static int take_field(const struct cli *cli, const struct cli_option *option, const char *text)
{
    struct enqueue_options *options = option->context;
    const char *equals = strchr(text, '=');
    struct bytes name, value;

    if (!equals || equals == text) {
        return cli_usage(cli, "--field: invalid field '%s'; use NAME=VALUE", text);
    }
    name = (struct bytes){text, (size_t)(equals - text)};
    value = (struct bytes){equals + 1, strlen(equals + 1)};
    return draft_add(&options->common, name, value) == 0 ? EX_OK : cli_no_memory();
}

int task_add_text(struct enqueue_options *options, const char *name, const char *value)
{
    return draft_add_text(&options->common, name, value) == 0 ? EX_OK : cli_no_memory();
}

/* Adds the option's field. */
static int take_text(const struct cli *cli, const struct cli_option *option, const char *text)
{
    (void)cli;
    return task_add_text(option->context, option->field, text ? text : "1");
}

/* An empty label or key would count as absent: the task would not be deduplicated. */
static int take_key(const struct cli *cli, const struct cli_option *option, const char *text)
{
    return *text ? take_text(cli, option, text)
                 : cli_usage(cli, "%s: the value is empty; give one, or leave out the option",
                             option->name);
}

static int take_duration(const struct cli *cli, const struct cli_option *option, const char *text)
{
    int64_t ms;
    int status = cli_duration(cli, option->name, text, &ms);

    return status == EX_OK ? take_text(cli, option, text) : status;
}

static int take_attempts(const struct cli *cli, const struct cli_option *option, const char *text)
{
    int64_t number;
    int status = cli_integer(cli, option->name, text, 1, TASK_MAX_ATTEMPTS, &number);

    return status == EX_OK ? take_text(cli, option, text) : status;
}

static int take_size(const struct cli *cli, const struct cli_option *option, const char *text)
{
    int64_t size;

    if (units_parse_size(text, &size) != 0 || size == 0) {
        return cli_usage(cli, "%s: invalid size '%s'; use one such as 64K or 10M", option->name,
                         text);
    }
    return take_text(cli, option, text);
}

static int take_directory(const struct cli *cli, const struct cli_option *option, const char *text)
{
    if (text[0] != '/') {
        return cli_usage(cli, "%s: '%s' is not an absolute path", option->name, text);
    }
    return take_text(cli, option, text);
}

static int take_due(const struct cli *cli, const struct cli_option *option, const char *text)
{
    struct enqueue_options *options = option->context;
    bool is_delay = strcmp(option->name, "--delay") == 0;
    int64_t ms = 0;
    int status = EX_OK;

    if (options->due[0]) {
        return cli_usage(cli, "give --delay or --at, not both");
    }
    if (is_delay) {
        status = cli_duration(cli, option->name, text, &ms);
    } else if (moment_parse(text, &ms) != 0) {
        status = cli_usage(cli,
                           "%s: invalid time '%s'; use one such as 2026-01-31T12:00:00Z, "
                           "'2026-01-31 12:00' or @1769860800",
                           option->name, text);
    }
    /* a delay is relative to the server's clock */
    (void)snprintf(options->due, sizeof options->due, "%s%lld", is_delay ? "+" : "", (long long)ms);
    return status;
}

static int take_expires(const struct cli *cli, const struct cli_option *option, const char *text)
{
    struct enqueue_options *options = option->context;
    int64_t ms, from = 0;
    int result = units_parse_duration(text, &ms);

    if (result == UNITS_TOO_LARGE) {
        return cli_duration(cli, option->name, text, &ms);
    }
    if (result == 0) {
        from = clock_wall_ms();
    } else if (moment_parse(text, &ms) != 0) {
        return cli_usage(cli,
                         "%s: invalid duration or time '%s'; use one such as 2h or "
                         "2026-01-31T12:00:00Z",
                         option->name, text);
    }
    ms += from;
    /* any time fits */
    (void)snprintf(options->expires, sizeof options->expires, ms % 1000 ? "%lld.%03lld" : "%lld",
                   (long long)(ms / 1000), (long long)(ms % 1000));
    return take_text(cli, option, options->expires);
}

int task_take_payload(const struct cli *cli, const struct cli_option *option, const char *text)
{
    struct enqueue_options *options = option->context;

    if (options->payload_file || options->payload.size > 0 ||
        draft_has(&options->common, "payload")) {
        return cli_usage(cli, "the payload is given twice; give it by one option, once");
    }
    if (strcmp(option->name, "--payload-file") == 0 || strcmp(text, "-") == 0) {
        options->payload_file = text;
        return EX_OK;
    }
    return task_add_text(options, "payload", text);
}

static int take_sign(const struct cli *cli, const struct cli_option *option, const char *text)
{
    struct enqueue_options *options = option->context;

    (void)cli;
    options->sign = text;
    return EX_OK;
}

static int take_valid(const struct cli *cli, const struct cli_option *option, const char *text)
{
    struct enqueue_options *options = option->context;

    if (units_parse_duration(text, &options->valid_ms) != 0 || options->valid_ms < 1000 ||
        options->valid_ms > TASK_VALID_MOST_MS) {
        return cli_usage(cli, "%s: invalid duration '%s'; use one from 1s to 365d", option->name,
                         text);
    }
    return EX_OK;
}

/* Values are checked here, so that a message names the option. */
const struct cli_option task_options[] = {
    {"--payload", .take = task_take_payload},
    {"--payload-file", .take = task_take_payload},
    {"--field", .repeats = true, .take = take_field},
    {"--id", .take = take_key, .field = "id"},
    {"--delay", .take = take_due},
    {"--at", .take = take_due},
    {"--timeout", .take = take_duration, .field = "timeout"},
    {"--max-attempts", .take = take_attempts, .field = "max_attempts"},
    {"--max-output", .take = take_size, .field = "max_output"},
    {"--directory", .take = take_directory, .field = "directory"},
    {"--expires", .take = take_expires, .field = "expires"},
    {"--result-ttl", .take = take_duration, .field = "result_ttl"},
    {"--lane", .take = take_text, .field = "lane"},
    {"--unique", .take = take_key, .field = "unique"},
    {"--unique-for", .take = take_duration, .field = "unique_for"},
    {"--unique-next", .value = CLI_NO_VALUE, .take = take_text, .field = "unique_next"},
    {"--sign", .take = take_sign},
    {"--valid", .take = take_valid},
    {0},
};

/* ---- command and payload */

static int join_command(struct enqueue_options *options, int count, char **words)
{
    /* a failed append marks the buffer */
    if (count == 1) {
        (void)buffer_append_text(&options->command, words[0]);
    }
    for (int i = 0; i < count && count > 1; i++) {
        if (i > 0) {
            (void)buffer_append_text(&options->command, " ");
        }
        escape_append_word(&options->command, bytes_of(words[i]));
    }
    if (options->command.failed) {
        return cli_no_memory();
    }
    if (count == 0) {
        return EX_OK;
    }
    return draft_add(&options->common, (struct bytes){"command", 7},
                     (struct bytes){options->command.data ? options->command.data : "",
                                    options->command.size}) == 0
               ? EX_OK
               : cli_no_memory();
}

static int read_all(int descriptor, struct buffer *content)
{
    ssize_t got;

    do {
        if (buffer_reserve(content, 65536) != 0) {
            return -1;
        }
        got = read(descriptor, content->data + content->size, 65536);
        if (got > 0) {
            content->size += (size_t)got;
        }
        if (content->size > ENQUEUE_MOST_BYTES) {
            errno = EMSGSIZE;
            return -1;
        }
    } while (got > 0 || (got < 0 && errno == EINTR));
    return got < 0 ? -1 : 0;
}

int task_read_payload(struct enqueue_options *options)
{
    bool from_stdin;
    int descriptor, status = EX_OK;

    if (!options->payload_file) {
        return EX_OK;
    }
    from_stdin = strcmp(options->payload_file, "-") == 0;
    descriptor = from_stdin ? STDIN_FILENO : open(options->payload_file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || read_all(descriptor, &options->payload) != 0) {
        status = errno == EMSGSIZE ? EX_DATAERR : EX_NOINPUT;
        cli_error("cannot read the payload from %s: %s", options->payload_file,
                  errno == EMSGSIZE ? ENQUEUE_TOO_LONG : strerror(errno));
    } else if (draft_add(&options->common, (struct bytes){"payload", 7},
                         (struct bytes){options->payload.size > 0 ? options->payload.data : "",
                                        options->payload.size}) != 0) {
        status = cli_no_memory();
    }
    /* closing a descriptor that was only read loses nothing */
    if (!from_stdin && descriptor >= 0) {
        (void)close(descriptor);
    }
    return status;
}

/* Refuses options after a shell line. They were meant for leat, but would become arguments of a
 * program that is named like the whole line. */
static int check_words(struct cli *cli, int argc, char **argv)
{
    const char *line = optind < argc ? argv[optind] : "";

    if (strcmp(argv[optind - 1], "--") == 0 || !strpbrk(line, " \t\n;|&<>")) {
        return EX_OK;
    }
    for (int i = optind + 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            return cli_usage(cli,
                             "%s follows the command; put options before it, or -- before it if "
                             "'%s' is the name of a program",
                             argv[i], line);
        }
    }
    return EX_OK;
}

/* Tasks from a file may have their own keys. */
static int check_unique(struct cli *cli, const struct enqueue_options *options)
{
    if (options->file || draft_has(&options->common, "unique")) {
        return EX_OK;
    }
    if (draft_has(&options->common, "unique_for")) {
        return cli_usage(cli, "--unique-for needs --unique");
    }
    if (draft_has(&options->common, "unique_next")) {
        return cli_usage(cli, "--unique-next needs --unique");
    }
    return EX_OK;
}

/* A task cannot add arguments to a listed command. */
static int check_listed(struct cli *cli, int words)
{
    if (words > 1 && cli->config->security.commands == CONFIG_COMMANDS_LISTED) {
        return cli_usage(
            cli, "this queue runs listed commands only; give the name of one, and its fields "
                 "with --field");
    }
    return EX_OK;
}

int task_complete(struct cli *cli, struct enqueue_options *options, int argc, char **argv)
{
    int status = check_words(cli, argc, argv);

    status = status == EX_OK ? check_unique(cli, options) : status;
    status = status == EX_OK ? check_listed(cli, argc - optind) : status;
    status = status == EX_OK ? join_command(options, argc - optind, argv + optind) : status;
    status = status == EX_OK ? task_read_payload(options) : status;
    if (status == EX_OK) {
        status = signer_open(cli, options->sign,
                             options->valid_ms > 0 ? options->valid_ms : TASK_VALID_MS,
                             &options->signer);
    }
    if (status == EX_OK && options->valid_ms > 0 && !options->signer) {
        status = cli_usage(cli, "--valid needs --sign, because tasks of this queue are not signed");
    }
    /* a stream entry needs at least one field */
    if (status == EX_OK && !options->file && options->common.count == 0) {
        status = task_add_text(options, "payload", "");
    }
    return status;
}

/* The value of the environment for this part, or NULL if there is no well-formed one. */
static const char *find_trace(enum trace_part part)
{
    const char *value = getenv(trace_variable(part));

    return value && trace_is_fine(part, bytes_of(value)) ? value : NULL;
}

/* A task belongs to the trace of the program that enqueues it, unless it has fields of its own. A
 * tracestate belongs to its traceparent. Returns 0, or -1 without memory. */
static int add_trace(struct draft *draft)
{
    bool has_own = draft_has(draft, trace_field(TRACE_PARENT));

    for (enum trace_part part = 0; part < TRACE_PARTS; part++) {
        bool follows = part == TRACE_STATE && (has_own || !find_trace(TRACE_PARENT));
        const char *value = find_trace(part);
        if (value && !follows && !draft_has(draft, trace_field(part)) &&
            draft_add_text(draft, trace_field(part), value) != 0) {
            return -1;
        }
    }
    return 0;
}

bool task_ready(const struct cli *cli, const struct enqueue_options *options, struct draft *draft,
                char *reason, size_t reason_size)
{
    if (add_trace(draft) != 0) {
        (void)snprintf(reason, reason_size, "out of memory");
        return false;
    }
    if (!draft_check(draft, &cli->config->task, reason, reason_size)) {
        return false;
    }
    if (signer_sign(options->signer, draft, options->due[0] ? options->due : "0") != 0) {
        (void)snprintf(reason, reason_size,
                       "cannot be signed: too many fields, or libcrypto failed");
        return false;
    }
    /* the arguments of a listed command may use the fields of the signature */
    return draft_is_listed(draft, cli->config, reason, reason_size);
}

int task_enqueue(struct cli *cli, struct enqueue_options *options, char tid[QUEUE_CURSOR_SIZE],
                 bool *is_new)
{
    struct command command = {0};
    struct redisReply *reply;
    char reason[256];
    int status;

    if (!task_ready(cli, options, &options->common, reason, sizeof reason)) {
        cli_error("workers would refuse the task: %s", reason);
        return EX_DATAERR;
    }
    status = cli_connect(cli);
    if (status != EX_OK) {
        return status;
    }
    queue_enqueue_begin(&command, &cli->queue);
    draft_append(&options->common, options->due[0] ? options->due : "0", &command);
    reply = cli_call(cli, &command, "cannot enqueue", 3, &status);
    if (reply) {
        *is_new = bytes_equal(fields_value(reply->element[1]), "new");
        bytes_copy(fields_value(reply->element[2]), tid, QUEUE_CURSOR_SIZE);
        freeReplyObject(reply);
    }
    return status;
}

void task_options_free(struct enqueue_options *options)
{
    buffer_free(&options->command);
    buffer_free(&options->payload);
    draft_free(&options->common);
    signer_close(options->signer);
}
