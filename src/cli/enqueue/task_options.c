/*
 * A task on the command line: its options, its command and its payload, for leat enqueue and leat
 * run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/enqueue/enqueue.h"
#include "cli/lib/moment.h"
#include "queue/calls.h"

/* ---- options */

static int add_field(const struct cli *cli, struct enqueue_options *options, const char *text)
{
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

static int set_due(const struct cli *cli, struct enqueue_options *options, int letter,
                   const char *text)
{
    int64_t ms;
    int status;

    if (options->due[0]) {
        return cli_usage(cli, "give --delay or --at, not both, and only once");
    }
    if (letter == TASK_OPTION_DELAY) {
        status = cli_duration(cli, "--delay", text, &ms);
        if (status != EX_OK) {
            return status;
        }
    } else if (moment_parse(text, &ms) != 0) {
        return cli_usage(cli,
                         "--at: invalid time '%s'; use one such as 2026-01-31T12:00:00Z, "
                         "'2026-01-31 12:00' or @1769860800",
                         text);
    }
    /* a delay is relative to the server's clock */
    (void)snprintf(options->due, sizeof options->due, "%s%lld",
                   letter == TASK_OPTION_DELAY ? "+" : "", (long long)ms);
    return EX_OK;
}

static int set_expires(const struct cli *cli, struct enqueue_options *options, const char *text)
{
    int64_t ms, from = 0;

    if (units_parse_duration(text, &ms) == 0) {
        from = clock_wall_ms();
    } else if (moment_parse(text, &ms) != 0) {
        return cli_usage(cli,
                         "--expires: invalid duration or time '%s'; use one such as 2h or "
                         "2026-01-31T12:00:00Z",
                         text);
    }
    ms += from;
    /* any time fits */
    (void)snprintf(options->expires, sizeof options->expires, ms % 1000 ? "%lld.%03lld" : "%lld",
                   (long long)(ms / 1000), (long long)(ms % 1000));
    return task_add_text(options, "expires", options->expires);
}

static int set_payload(const struct cli *cli, struct enqueue_options *options, int letter)
{
    if (options->payload_file || options->payload.size > 0 ||
        draft_has(&options->common, "payload")) {
        return cli_usage(cli, "give --payload or --payload-file, not both, and only once");
    }
    if (letter == TASK_OPTION_PAYLOAD_FILE || strcmp(optarg, "-") == 0) {
        options->payload_file = optarg;
        return EX_OK;
    }
    return task_add_text(options, "payload", optarg);
}

/* Checks values here, so that the message names the option. */
static int take_checked(const struct cli *cli, struct enqueue_options *options, int letter)
{
    int64_t number;
    int status;

    if (letter == TASK_OPTION_TIMEOUT) {
        status = cli_duration(cli, "--timeout", optarg, &number);
        return status == EX_OK ? task_add_text(options, "timeout", optarg) : status;
    }
    if (letter == TASK_OPTION_RESULT_TTL) {
        status = cli_duration(cli, "--result-ttl", optarg, &number);
        return status == EX_OK ? task_add_text(options, "result_ttl", optarg) : status;
    }
    if (letter == TASK_OPTION_MAX_ATTEMPTS) {
        status = cli_integer(cli, "--max-attempts", optarg, 1, &number);
        return status == EX_OK ? task_add_text(options, "max_attempts", optarg) : status;
    }
    if (letter == TASK_OPTION_MAX_OUTPUT) {
        if (units_parse_size(optarg, &number) != 0 || number == 0) {
            return cli_usage(cli, "--max-output: invalid size '%s'; use one such as 64K or 10M",
                             optarg);
        }
        return task_add_text(options, "max_output", optarg);
    }
    if (letter == TASK_OPTION_DIRECTORY) {
        if (optarg[0] != '/') {
            return cli_usage(cli, "--directory: '%s' is not an absolute path", optarg);
        }
        return task_add_text(options, "directory", optarg);
    }
    if (letter == TASK_OPTION_VALID) {
        if (units_parse_duration(optarg, &number) != 0 || number < 1000 ||
            number > TASK_VALID_MOST_MS) {
            return cli_usage(cli, "--valid: invalid duration '%s'; use one from 1s to 365d",
                             optarg);
        }
        options->valid_ms = number;
        return EX_OK;
    }
    if (letter == TASK_OPTION_UNIQUE_FOR) {
        status = cli_duration(cli, "--unique-for", optarg, &number);
        return status == EX_OK ? task_add_text(options, "unique_for", optarg) : status;
    }
    return set_expires(cli, options, optarg);
}

int task_option(const struct cli *cli, struct enqueue_options *options, int letter)
{
    switch (letter) {
    case TASK_OPTION_PAYLOAD:
    case TASK_OPTION_PAYLOAD_FILE:
        return set_payload(cli, options, letter);
    case TASK_OPTION_FIELD:
        return add_field(cli, options, optarg);
    case TASK_OPTION_ID:
        return task_add_text(options, "id", optarg);
    case TASK_OPTION_LANE:
        return task_add_text(options, "lane", optarg);
    case TASK_OPTION_UNIQUE:
        return task_add_text(options, "unique", optarg);
    case TASK_OPTION_UNIQUE_NEXT:
        return task_add_text(options, "unique_next", "1");
    case TASK_OPTION_SIGN:
        options->sign = optarg;
        return EX_OK;
    case TASK_OPTION_DELAY:
    case TASK_OPTION_AT:
        return set_due(cli, options, letter, optarg);
    default:
        return take_checked(cli, options, letter);
    }
}

/* ---- command and payload */

/* Appends the word, in single quotes if it contains a character that is special to a shell. */
static void append_quoted(struct buffer *line, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "%+,-./:=@_";

    /* a failed append marks the buffer */
    if (*word && word[strspn(word, safe)] == '\0') {
        (void)buffer_append_text(line, word);
        return;
    }
    (void)buffer_append_text(line, "'");
    for (; *word; word++) {
        if (*word == '\'') {
            (void)buffer_append_text(line, "'\\''");
        } else {
            (void)buffer_append(line, word, 1);
        }
    }
    (void)buffer_append_text(line, "'");
}

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
        append_quoted(&options->command, words[i]);
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
    } while (got > 0 || (got < 0 && errno == EINTR));
    return got < 0 ? -1 : 0;
}

static int read_payload(struct enqueue_options *options)
{
    bool from_stdin;
    int descriptor, status = EX_OK;

    if (!options->payload_file) {
        return EX_OK;
    }
    from_stdin = strcmp(options->payload_file, "-") == 0;
    descriptor = from_stdin ? STDIN_FILENO : open(options->payload_file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || read_all(descriptor, &options->payload) != 0) {
        cli_error("cannot read the payload from %s: %s", options->payload_file, strerror(errno));
        status = EX_NOINPUT;
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

    if (status == EX_OK) {
        status = check_unique(cli, options);
    }
    if (status == EX_OK) {
        status = check_listed(cli, argc - optind);
    }
    if (status == EX_OK) {
        status = join_command(options, argc - optind, argv + optind);
    }
    if (status == EX_OK) {
        status = read_payload(options);
    }
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

bool task_ready(const struct cli *cli, const struct enqueue_options *options, struct draft *draft,
                char *reason, size_t reason_size)
{
    if (!draft_check(draft, cli->config->task.command, reason, reason_size)) {
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

struct redisReply *task_enqueue(struct cli *cli, struct enqueue_options *options, int *status)
{
    struct command command = {0};
    struct redisReply *reply;
    char reason[256];
    const char *due = options->due[0] ? options->due : "0";

    if (!task_ready(cli, options, &options->common, reason, sizeof reason)) {
        cli_error("workers would refuse the task: %s", reason);
        *status = EX_DATAERR;
        return NULL;
    }
    *status = cli_connect(cli);
    if (*status != EX_OK) {
        return NULL;
    }
    queue_enqueue_begin(&command, &cli->queue);
    draft_append(&options->common, due, &command);
    reply = cli_call(cli, &command, "cannot enqueue", 3, status);
    command_free(&command);
    return reply;
}

void task_options_free(struct enqueue_options *options)
{
    buffer_free(&options->command);
    buffer_free(&options->payload);
    draft_free(&options->common);
    signer_close(options->signer);
}
