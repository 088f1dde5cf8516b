/*
 * leat enqueue: one task from the command line. Many at once are in bulk.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/enqueue.h"
#include "cli/moment.h"
#include "cli/output.h"
#include "cli/record.h"

static const char help[] =
    "Usage: leat enqueue [OPTION]... [--] COMMAND-LINE...\n"
    "       leat enqueue [OPTION]... --file FILE [--null | --json-lines] [--] [COMMAND-LINE...]\n"
    "Put tasks into the queue; print their ids, one a line.\n"
    "\n"
    "A single argument is a line for /bin/sh. Several arguments are a program and its\n"
    "arguments: each is quoted for the shell. Options end where the command begins. A queue\n"
    "whose configuration has a command of its own takes none here.\n"
    "\n"
    "  --payload TEXT       bytes for the task's stdin; - reads them from leat's stdin\n"
    "  --payload-file FILE  the same from a file\n"
    "  --field NAME=VALUE   a field more; the task finds it as $TASK_NAME\n"
    "  --id ID              a label of your own: while a task with it lives, none is added\n"
    "  --delay DURATION     not before that long from now, such as 5m\n"
    "  --at TIME            not before: 2026-01-31T12:00:00Z, '2026-01-31 12:00' (local), "
    "@SECONDS\n"
    "  --timeout DURATION   end an attempt that runs longer\n"
    "  --max-attempts N     give up after so many\n"
    "  --expires WHEN       a duration or a time; if not started by then, a dead letter\n"
    "  --file FILE          many tasks, one a line; - is stdin; empty lines are skipped. A line\n"
    "                       is a command, or the payload where the command is known\n"
    "  --null               in FILE a NUL byte ends a task, not a newline\n"
    "  --json-lines         each line is an object of fields; payload_base64 for raw bytes\n"
    "  --quiet              print no ids\n"
    "  --json               print {\"tid\": ..., \"new\": true} for each task, one a line\n"
    "  -q, -c, -h           as in leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails enqueue 'make thumbs > log'\n"
    "  leat enqueue --delay 5m -- convert \"my photo.png\" small.jpg\n"
    "  find . -name '*.png' -print0 | leat enqueue --file - --null -- ./convert-stdin\n"
    "\n"
    "Exit codes: 0 the task is in the queue, also where --id found it there already; 64 usage;\n"
    "65 refused, nothing of that task is in the queue; 66 FILE cannot be read; 69 Redis cannot be\n"
    "reached; 74 ids cannot be written; 75 the queue is full, or Redis busy: try again; 77\n"
    "denied by Redis; 78 configuration.\n";

enum {
    OPTION_PAYLOAD = 256,
    OPTION_PAYLOAD_FILE,
    OPTION_FIELD,
    OPTION_ID,
    OPTION_DELAY,
    OPTION_AT,
    OPTION_TIMEOUT,
    OPTION_MAX_ATTEMPTS,
    OPTION_EXPIRES,
    OPTION_FILE,
    OPTION_NULL,
    OPTION_JSON_LINES,
    OPTION_QUIET,
    OPTION_JSON,
};

static const struct option options_table[] = {
    CLI_COMMON_OPTIONS,
    {"payload", required_argument, NULL, OPTION_PAYLOAD},
    {"payload-file", required_argument, NULL, OPTION_PAYLOAD_FILE},
    {"field", required_argument, NULL, OPTION_FIELD},
    {"id", required_argument, NULL, OPTION_ID},
    {"delay", required_argument, NULL, OPTION_DELAY},
    {"at", required_argument, NULL, OPTION_AT},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"max-attempts", required_argument, NULL, OPTION_MAX_ATTEMPTS},
    {"expires", required_argument, NULL, OPTION_EXPIRES},
    {"file", required_argument, NULL, OPTION_FILE},
    {"null", no_argument, NULL, OPTION_NULL},
    {"json-lines", no_argument, NULL, OPTION_JSON_LINES},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"json", no_argument, NULL, OPTION_JSON},
    {0},
};

/* ---- options */

static int add_field(const struct cli *cli, struct enqueue_options *options, const char *text)
{
    const char *equals = strchr(text, '=');
    struct bytes name, value;

    if (!equals || equals == text)
        return cli_usage(cli, "--field wants NAME=VALUE, not '%s'", text);
    name = (struct bytes){text, (size_t)(equals - text)};
    value = (struct bytes){equals + 1, strlen(equals + 1)};
    return draft_add(&options->common, name, value) == 0 ? EX_OK : cli_no_memory();
}

static int add_text(struct enqueue_options *options, const char *name, const char *value)
{
    return draft_add_text(&options->common, name, value) == 0 ? EX_OK : cli_no_memory();
}

static int set_due(const struct cli *cli, struct enqueue_options *options, int letter,
                   const char *text)
{
    int64_t ms;
    int status;

    if (options->due[0])
        return cli_usage(cli, "give --delay or --at, once");
    if (letter == OPTION_DELAY) {
        status = cli_duration(cli, "--delay", text, &ms);
        if (status != EX_OK)
            return status;
    } else if (moment_parse(text, &ms) != 0) {
        return cli_usage(cli,
                         "--at wants a time such as 2026-01-31T12:00:00Z, '2026-01-31 12:00' or "
                         "@1769860800, not '%s'",
                         text);
    }
    /* a number always fits; a delay counts on the server's clock */
    (void)snprintf(options->due, sizeof options->due, "%s%lld", letter == OPTION_DELAY ? "+" : "",
                   (long long)ms);
    return EX_OK;
}

static int set_expires(const struct cli *cli, struct enqueue_options *options, const char *text)
{
    int64_t ms, from = 0;

    if (units_parse_duration(text, &ms) == 0)
        from = clock_wall_ms();
    else if (moment_parse(text, &ms) != 0)
        return cli_usage(cli,
                         "--expires wants a duration such as 2h or a time such as "
                         "2026-01-31T12:00:00Z, not '%s'",
                         text);
    /* whole seconds, rounded up: never earlier than asked */
    (void)snprintf(options->expires, sizeof options->expires, "%lld",
                   (long long)((from + ms + 999) / 1000));
    return add_text(options, "expires", options->expires);
}

static int set_input(const struct cli *cli, struct enqueue_options *options,
                     enum enqueue_input input)
{
    if (options->input != ENQUEUE_ONE && options->input != input)
        return cli_usage(cli, "give --null or --json-lines, not both");
    options->input = input;
    return EX_OK;
}

static int set_payload(const struct cli *cli, struct enqueue_options *options, int letter)
{
    if (options->payload_file || options->payload.size > 0 ||
        draft_has(&options->common, "payload"))
        return cli_usage(cli, "give one payload");
    if (letter == OPTION_PAYLOAD_FILE || strcmp(optarg, "-") == 0) {
        options->payload_file = optarg;
        return EX_OK;
    }
    return add_text(options, "payload", optarg);
}

/* Values that have a form are checked here, so that the message can name the option. */
static int take_checked(const struct cli *cli, struct enqueue_options *options, int letter)
{
    int64_t number;
    int status;

    if (letter == OPTION_TIMEOUT) {
        status = cli_duration(cli, "--timeout", optarg, &number);
        return status == EX_OK ? add_text(options, "timeout", optarg) : status;
    }
    if (letter == OPTION_MAX_ATTEMPTS) {
        status = cli_integer(cli, "--max-attempts", optarg, 1, &number);
        return status == EX_OK ? add_text(options, "max_attempts", optarg) : status;
    }
    return set_expires(cli, options, optarg);
}

static int take_option(const struct cli *cli, struct enqueue_options *options, int letter)
{
    switch (letter) {
    case OPTION_PAYLOAD:
    case OPTION_PAYLOAD_FILE:
        return set_payload(cli, options, letter);
    case OPTION_FIELD:
        return add_field(cli, options, optarg);
    case OPTION_ID:
        return add_text(options, "id", optarg);
    case OPTION_DELAY:
    case OPTION_AT:
        return set_due(cli, options, letter, optarg);
    case OPTION_FILE:
        options->file = optarg;
        return EX_OK;
    case OPTION_NULL:
        return set_input(cli, options, ENQUEUE_NULL);
    case OPTION_JSON_LINES:
        return set_input(cli, options, ENQUEUE_JSON);
    case OPTION_QUIET:
        options->quiet = true;
        return EX_OK;
    case OPTION_JSON:
        options->json = true;
        return EX_OK;
    default:
        return take_checked(cli, options, letter);
    }
}

/* ---- command and payload */

/* In single quotes where a shell might see more than a word in it. */
static void append_quoted(struct buffer *line, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "%+,-./:=@_";

    /* failures mark the buffer */
    if (*word && word[strspn(word, safe)] == '\0') {
        (void)buffer_append_text(line, word);
        return;
    }
    (void)buffer_append_text(line, "'");
    for (; *word; word++) {
        if (*word == '\'')
            (void)buffer_append_text(line, "'\\''");
        else
            (void)buffer_append(line, word, 1);
    }
    (void)buffer_append_text(line, "'");
}

static int join_command(struct enqueue_options *options, int count, char **words)
{
    /* failures mark the buffer */
    if (count == 1)
        (void)buffer_append_text(&options->command, words[0]);
    for (int i = 0; i < count && count > 1; i++) {
        if (i > 0)
            (void)buffer_append_text(&options->command, " ");
        append_quoted(&options->command, words[i]);
    }
    if (options->command.failed)
        return cli_no_memory();
    if (count == 0)
        return EX_OK;
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
        if (buffer_reserve(content, 65536) != 0)
            return -1;
        got = read(descriptor, content->data + content->size, 65536);
        if (got > 0)
            content->size += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    return got < 0 ? -1 : 0;
}

static int read_payload(struct enqueue_options *options)
{
    bool from_stdin;
    int descriptor, status = EX_OK;

    if (!options->payload_file)
        return EX_OK;
    from_stdin = strcmp(options->payload_file, "-") == 0;
    descriptor = from_stdin ? STDIN_FILENO : open(options->payload_file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || read_all(descriptor, &options->payload) != 0) {
        cli_error("cannot read the payload %s: %s", options->payload_file, strerror(errno));
        status = EX_NOINPUT;
    } else if (draft_add(&options->common, (struct bytes){"payload", 7},
                         (struct bytes){options->payload.size > 0 ? options->payload.data : "",
                                        options->payload.size}) != 0) {
        status = cli_no_memory();
    }
    /* nothing was written to it that closing could lose */
    if (!from_stdin && descriptor >= 0)
        (void)close(descriptor);
    return status;
}

/* ---- one task */

void enqueue_print(const struct enqueue_options *options, bool is_new, struct bytes tid,
                   struct bytes label)
{
    json_t *object;

    /* failures show when stdout is flushed */
    if (options->json) {
        object = json_pack("{s:s%, s:b}", "tid", tid.data, tid.size, "new", (int)is_new);
        if (object && label.size > 0 && output_json_bytes(object, "id", label) != 0) {
            json_decref(object);
            object = NULL;
        }
        (void)output_json(object, false);
    } else if (!options->quiet) {
        (void)fwrite(tid.data, 1, tid.size, stdout);
        (void)putchar('\n');
    }
}

static struct bytes label_of(const struct draft *draft)
{
    for (size_t i = 0; i < draft->count; i++) {
        if (bytes_equal(draft->fields[i].name, "id"))
            return draft->fields[i].value;
    }
    return (struct bytes){"", 0};
}

static int enqueue_one(struct cli *cli, const struct enqueue_options *options)
{
    struct command command = {0};
    struct redisReply *reply;
    char reason[256];
    bool is_new;
    int status;

    if (!draft_check(&options->common, cli->config->task.command != NULL, reason, sizeof reason)) {
        cli_error("the task would be refused: %s", reason);
        return EX_DATAERR;
    }
    status = cli_connect(cli);
    if (status != EX_OK)
        return status;

    queue_enqueue_begin(&command, &cli->queue);
    draft_append(&options->common, options->due[0] ? options->due : "0", &command);
    reply = cli_call(cli, &command, "cannot enqueue", 3, &status);
    command_free(&command);
    if (!reply)
        return status;
    is_new = bytes_equal(record_value(reply->element[1]), "new");
    enqueue_print(options, is_new, record_value(reply->element[2]), label_of(&options->common));
    if (!is_new)
        cli_error("a task with this id is in the queue already; nothing was added");
    freeReplyObject(reply);
    return EX_OK;
}

static int check_combination(const struct cli *cli, const struct enqueue_options *options)
{
    if (!options->file && options->input != ENQUEUE_ONE)
        return cli_usage(cli, "--null and --json-lines need --file");
    if (!options->file)
        return EX_OK;
    if (draft_has(&options->common, "id"))
        return cli_usage(cli, "--id is for one task: with --file give ids by --json-lines");
    if (options->payload_file || draft_has(&options->common, "payload"))
        return cli_usage(cli, "with --file the payload comes from the file");
    return EX_OK;
}

static int enqueue(struct cli *cli, struct enqueue_options *options, int count, char **words)
{
    int status = check_combination(cli, options);

    if (status == EX_OK)
        status = cli_load(cli);
    if (status == EX_OK && count == 0 && !options->file && !cli->config->task.command &&
        !draft_has(&options->common, "command"))
        status = cli_usage(cli, "what is to run? Give a command line, or --file");
    if (status == EX_OK)
        status = join_command(options, count, words);
    if (status == EX_OK)
        status = read_payload(options);
    /* Redis takes no task without any field */
    if (status == EX_OK && !options->file && options->common.count == 0)
        status = add_text(options, "payload", "");
    if (status != EX_OK)
        return status;
    return options->file ? enqueue_bulk(cli, options) : enqueue_one(cli, options);
}

/* A whole shell line with options behind it: they were meant for leat, and would be the line's
 * arguments. */
static int check_words(struct cli *cli, int argc, char **argv)
{
    const char *line = optind < argc ? argv[optind] : "";

    if (strcmp(argv[optind - 1], "--") == 0 || !strpbrk(line, " \t\n;|&<>"))
        return EX_OK;
    for (int i = optind + 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0)
            return cli_usage(cli,
                             "%s stands behind the command: options go before it (a program whose "
                             "name is '%s' needs -- in front)",
                             argv[i], line);
    }
    return EX_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct enqueue_options options = {0};
    int letter, status = EX_OK;

    /* '+': what follows the command's first word belongs to it */
    while (status == EX_OK && (letter = cli_option(cli, argc, argv, "+:" CLI_COMMON_LETTERS,
                                                   options_table, &status)) != CLI_OPTION_END) {
        if (letter == CLI_OPTION_STOP)
            goto done;
        status = take_option(cli, &options, letter);
    }
    if (status == EX_OK)
        status = check_words(cli, argc, argv);
    if (status == EX_OK)
        status = enqueue(cli, &options, argc - optind, argv + optind);
done:
    buffer_free(&options.command);
    buffer_free(&options.payload);
    draft_free(&options.common);
    return status;
}

const struct subcommand enqueue_command = {"enqueue", "put tasks into the queue", help, run};
