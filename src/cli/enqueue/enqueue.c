/*
 * leat enqueue: one task from the command line. bulk.c adds many tasks from a file.
 */
#include <stdio.h>
#include <string.h>

#include "cli/enqueue/enqueue.h"
#include "cli/enqueue/replica_wait.h"
#include "cli/lib/output.h"
#include "cli/lib/text.h"

static const char help[] =
    "Usage: leat enqueue [OPTION]... [--] COMMAND-LINE...\n"
    "       leat enqueue [OPTION]... --file FILE [--] [COMMAND-LINE...]\n"
    "Add tasks to the queue and print their ids, one per line.\n"
    "\n"
    "A single argument is a shell line. Several arguments are a program and its\n"
    "arguments; leat quotes each of them for the shell. Options end where the command\n"
    "begins. If the configuration sets [task] command, give no command.\n"
    "\n"
    "Options:\n"
    /* clang-format off */
    TASK_OPTIONS_HELP
    /* clang-format on */
    "  --file FILE          add a task for each line of FILE; '-' is stdin. A line\n"
    "                       is a command, or the payload if the command is known\n"
    "  --as FIELD           each line of FILE becomes this field instead; the command\n"
    "                       sees it as $TASK_FIELD\n"
    "  --null               tasks in FILE end with a NUL byte, not a newline\n"
    "  --json-lines         each line of FILE is a JSON object of fields;\n"
    "                       payload_base64 holds a binary payload\n"
    "  --quiet              print no ids\n"
    "  --json               print one JSON object per line: tid, new, id\n"
    "  -q, -c, -h           see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails enqueue 'make thumbs > log'\n"
    "  leat enqueue --lane alice --unique alice/photos './sync alice/photos'\n"
    "  leat enqueue --delay 5m -- convert \"my photo.png\" small.jpg\n"
    "  find . -name '*.png' -print0 |\n"
    "      leat enqueue --file - --null -- ./convert-stdin\n"
    "  leat enqueue --file urls.txt --as URL ./fetch\n"
    "\n"
    "Exit codes:\n"
    "  0   the task is in the queue; with --id it may have been there before\n"
    "  1   with --unique: nothing was added; the printed id is that of the task\n"
    "      with the same key\n"
    "  2   the task is in the queue, but on fewer replicas than [redis]\n"
    "      wait_replicas\n"
    "  64  wrong usage\n"
    "  65  the task was refused and is not in the queue\n"
    "  66  FILE, the payload or the key cannot be read\n"
    "  69  Redis cannot be reached\n"
    "  74  the ids cannot be written\n"
    "  75  the queue is full or Redis is busy; try again later\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong\n"
    "  130 interrupted while reading FILE\n";

#define EXIT_EXISTS 1

/* ---- options */

static int take_input(const struct cli *cli, const struct cli_option *option, const char *value)
{
    struct enqueue_options *options = option->context;
    enum enqueue_input input = strcmp(option->name, "--null") == 0 ? ENQUEUE_NULL : ENQUEUE_JSON;

    (void)value;
    if (options->input != ENQUEUE_ONE && options->input != input) {
        return cli_usage(cli, "give --null or --json-lines, not both");
    }
    options->input = input;
    return EX_OK;
}

/* ---- one task */

void enqueue_print(const struct enqueue_options *options, bool is_new, struct bytes tid,
                   struct bytes label)
{
    struct buffer line = BUFFER_INIT;
    json_t *object;

    /* cli_flush reports failures */
    if (options->json) {
        object = json_pack("{s:s%, s:b}", "tid", tid.data, tid.size, "new", (int)is_new);
        if (label.size > 0) {
            output_put_bytes(&object, "id", label);
        }
        (void)output_json(object, false);
    } else if (!options->quiet) {
        /* a failed append marks the buffer */
        (void)text_append(&line, tid.data, tid.size);
        (void)buffer_append_text(&line, "\n");
        (void)output_write(&line);
        buffer_free(&line);
    }
}

/* With --id this is a success: the task is in the queue. With --unique the task was not added. */
static int say_exists(const struct draft *draft)
{
    if (draft_has(draft, "unique")) {
        cli_error("nothing was added: a task in the queue has this unique key%s, or one that "
                  "succeeded still keeps the key",
                  draft_has(draft, "id") ? " or label" : "");
        return EXIT_EXISTS;
    }
    cli_error("nothing was added: a task with this label is already in the queue");
    return EX_OK;
}

static int enqueue_one(struct cli *cli, struct enqueue_options *options)
{
    char tid[QUEUE_CURSOR_SIZE];
    bool is_new;
    int status = task_enqueue(cli, options, tid, &is_new);

    if (status != EX_OK) {
        return status;
    }
    enqueue_print(options, is_new, bytes_of(tid), draft_label(&options->common));
    if (!is_new) {
        status = say_exists(&options->common);
    }
    /* also if the task was in the queue before: the caller may repeat an enqueue that failed here
     */
    return status == EX_OK ? cli_wait_replicas(cli, 1) : status;
}

/* True if the payload of all tasks may be an option, because no line becomes one. */
static bool takes_payload(const struct enqueue_options *options)
{
    return options->line_field && strcmp(options->line_field, "payload") != 0;
}

/* True if the lines of the file have the command, or may have it. */
static bool lines_have_command(const struct enqueue_options *options)
{
    return options->file && (!options->line_field || strcmp(options->line_field, "command") == 0);
}

static int check_combination(const struct cli *cli, const struct enqueue_options *options)
{
    if (options->json && options->quiet) {
        return cli_usage(cli, "give --json or --quiet, not both");
    }
    if (!options->file && options->input != ENQUEUE_ONE) {
        return cli_usage(cli, "--null and --json-lines need --file");
    }
    if (options->line_field && (!options->file || options->input == ENQUEUE_JSON)) {
        return cli_usage(cli, "--as needs --file, without --json-lines");
    }
    if (!options->file) {
        return EX_OK;
    }
    if (options->line_field && draft_has(&options->common, options->line_field)) {
        return cli_usage(cli, "the field %s is given twice: by --as and by another option",
                         options->line_field);
    }
    if (draft_has(&options->common, "id")) {
        return cli_usage(cli, "--id is for one task; with --file, use --json-lines to give ids");
    }
    if (draft_has(&options->common, "unique")) {
        return cli_usage(cli,
                         "--unique is for one task; with --file, use --json-lines to give keys");
    }
    if (!takes_payload(options) &&
        (options->payload_file || draft_has(&options->common, "payload"))) {
        return cli_usage(cli, "give --payload or --file, not both; payloads come from the file");
    }
    return EX_OK;
}

static int enqueue(struct cli *cli, struct enqueue_options *options, int argc, char **argv)
{
    int status = check_combination(cli, options);

    status = status == EX_OK ? cli_load(cli) : status;
    if (status == EX_OK && optind == argc && !lines_have_command(options) &&
        !cli->config->task.command && !draft_has(&options->common, "command")) {
        status = cli_usage(cli, options->file ? "missing operand: give a command line; with --as, "
                                                "the lines of the file have none"
                                              : "missing operand: give a command line, or --file");
    }
    status = status == EX_OK ? task_complete(cli, options, argc, argv) : status;
    if (status != EX_OK) {
        return status;
    }
    return options->file ? enqueue_bulk(cli, options) : enqueue_one(cli, options);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct enqueue_options options = {0};
    const struct cli_option known[] = {
        {"--file", .text = &options.file},
        {"--as", .text = &options.line_field},
        {"--null", .value = CLI_NO_VALUE, .take = take_input, .context = &options},
        {"--json-lines", .value = CLI_NO_VALUE, .take = take_input, .context = &options},
        {"--quiet", .flag = &options.quiet},
        {"--json", .flag = &options.json},
        {.more = task_options, .context = &options},
    };
    int status = cli_options(cli, argc, argv, CLI_WORDS, known);

    status = status == EX_OK ? enqueue(cli, &options, argc, argv) : status;
    task_options_free(&options);
    return status;
}

const struct subcommand enqueue_command = {"enqueue", "Add tasks to the queue", help, run};
