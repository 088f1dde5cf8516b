/*
 * leat status: the command, for one queue or all, once or repeatedly.
 */
#include "cli/status/status.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/lib/cli.h"
#include "cli/lib/queues.h"
#include "cli/status/lanes.h"
#include "cli/status/overview.h"
#include "queue/calls.h"

#define DEFAULT_INTERVAL_MS 2000
#define DEFAULT_LANES 10
#define MOST_LANES 1000

static const char help[] =
    "Usage: leat status [OPTION]...\n"
    "Show queue statistics: tasks, workers, shared settings, and totals since the\n"
    "queue was created. The exit code tells whether the queue is healthy.\n"
    "\n"
    "Numbers of tasks, totals and rates of the queue are of one moment. BUSY is how\n"
    "many tasks a worker runs, and how many it may run. DONE and FAILED count its\n"
    "attempts since its start, up to a second ago. SEEN is the age of its last\n"
    "heartbeat: a worker sends three of them in a lease, and is lost if it has been\n"
    "silent for one.\n"
    "\n"
    "Without -q and -c, on a host with several queues, leat status prints one line\n"
    "per queue. A queue that cannot be reached has a line with the reason.\n"
    "\n"
    "Options:\n"
    "  --all              print one line per queue of " CONFIG_SOURCE_FOLDER "\n"
    "  --json             print JSON; with --watch, one object per line\n"
    "  --watch [SECONDS]  repeat every SECONDS (default: 2)\n"
    "  --lanes [N]        also show the N longest lanes (default: 10)\n"
    "  --max-ready N      unhealthy if more than N tasks are ready\n"
    "  --max-oldest AGE   unhealthy if a task has been ready for longer, such as 5m\n"
    "  --max-dead N       unhealthy if there are more than N dead letters\n"
    "  -q, -c, -h         see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails status --watch\n"
    "  leat -q thumbnails status --json | jq .figures.ready\n"
    "  leat -q thumbnails status --max-oldest 10m --max-dead 0 >/dev/null || alert\n"
    "\n"
    "Exit codes:\n"
    "  0   healthy\n"
    "  1   unhealthy: no live worker, no worker that can take tasks, another\n"
    "      consumer group on the stream, or a limit (--max-...) is exceeded\n"
    "  64  wrong usage\n" CLI_EXITS "For several queues, it is the highest exit code of all.\n";

struct status_options {
    bool all, json;
    int64_t interval_ms; /* 0: once */
    int64_t lanes;       /* how many to show; 0: none */
    struct status_limits limits;
    char **words; /* of the command line */
};

struct redisReply *status_call(struct cli *cli, int *status)
{
    struct command command = {0};

    queue_status(&command, &cli->queue);
    return cli_call(cli, &command, "cannot read the queue's status", STATUS_ELEMENTS, status);
}

/* Cuts the page to the height of the terminal, so that its top does not scroll away. */
static void crop(struct buffer *page, size_t height)
{
    size_t lines = 0;

    for (size_t i = 0; i < page->size && height > 1; i++) {
        if (page->data[i] == '\n' && ++lines == height - 1) {
            page->size = i;
            return;
        }
    }
}

/* While watching, a page is drawn over the last one, so that nothing flickers. */
static void begin_page(struct buffer *page, const struct output *output, bool watching)
{
    /* a failed append marks the buffer */
    if (watching && output->terminal) {
        (void)buffer_append_text(page, "\033[H\033[J");
    }
}

/* Writes and frees the page. Returns 0, or an exit status after printing the error. */
static int end_page(struct buffer *page, const struct output *output, bool watching)
{
    int result;

    if (watching && output->terminal) {
        crop(page, output->height);
    }
    result = output_write(page);
    buffer_free(page);
    return result;
}

static int show_page(const struct cli *cli, const struct status *status,
                     const struct buffer *problems, const struct lanes *lanes, bool watching)
{
    struct output output = output_look();
    struct buffer page = BUFFER_INIT;
    int result;

    begin_page(&page, &output, watching);
    result = status_render(status, problems, cli->config->queue.name, &output, &page);
    if (result == 0 && lanes->most > 0) {
        result = lanes_render(lanes, status->now_ms, &output, &page);
    }
    page.failed = page.failed || result != 0;
    return end_page(&page, &output, watching);
}

static int show_overview(const struct overview *overview, bool watching)
{
    struct output output = output_look();
    struct buffer page = BUFFER_INIT;

    begin_page(&page, &output, watching);
    if (overview_render(overview, &output, &page) != 0) {
        page.failed = true;
    }
    return end_page(&page, &output, watching);
}

/* Makes the object, with lanes only if --lanes was given. */
static json_t *page_json(const struct cli *cli, const struct status *status,
                         const struct buffer *problems, const struct lanes *lanes)
{
    json_t *page = status_json(status, problems, cli->config->queue.name);

    if (lanes->most > 0) {
        output_put(&page, "lanes", lanes_json(lanes));
    }
    return page;
}

static int show(const struct cli *cli, const struct status_options *options,
                const struct redisReply *reply, const struct lanes *lanes)
{
    struct buffer problems = BUFFER_INIT;
    struct status status;
    bool watching = options->interval_ms > 0;
    int result = EX_OK;

    if (status_read(reply, cli->config->queue.lease_ms, &status) != 0) {
        return cli_no_memory();
    }
    if (status_problems(&status, cli->config->queue.group, &options->limits, &problems) != 0) {
        result = cli_no_memory();
    } else if (options->json) {
        result = output_json(page_json(cli, &status, &problems, lanes), !watching);
    } else {
        result = show_page(cli, &status, &problems, lanes, watching);
    }
    if (result == EX_OK && problems.size > 0) {
        result = STATUS_EXIT_UNHEALTHY;
    }
    buffer_free(&problems);
    status_free(&status);
    return result;
}

static int print_one(struct cli *cli, const struct status_options *options)
{
    struct lanes lanes = {.most = (size_t)options->lanes};
    struct redisReply *reply;
    int status = cli_connect(cli);

    if (status != EX_OK) {
        return status;
    }
    reply = status_call(cli, &status);
    if (!reply) {
        return status;
    }
    if (lanes.most > 0) {
        status = lanes_read(cli, &lanes);
    }
    status = status == EX_OK ? show(cli, options, reply, &lanes) : status;
    lanes_free(&lanes);
    freeReplyObject(reply);
    return status;
}

static int print_all(const struct status_options *options)
{
    bool watching = options->interval_ms > 0;
    struct overview overview;
    int status = overview_ask(&options->limits, &overview);

    if (status == EX_OK) {
        status = options->json ? output_json(overview_json(&overview), !watching)
                               : show_overview(&overview, watching);
    }
    if (status == EX_OK && !watching) {
        status = overview_exit_status(&overview);
    }
    overview_free(&overview);
    return status;
}

/* Repeats the page, at once after the window was resized. Waits through outages of Redis. */
static int watch(struct cli *cli, const struct status_options *options)
{
    const struct timespec interval = {
        .tv_sec = (time_t)(options->interval_ms / 1000),
        .tv_nsec = (long)(options->interval_ms % 1000 * CLOCK_NS_PER_MS),
    };
    sigset_t resized;
    int status;

    /* a blocked signal stays pending while a page is drawn, and then ends the wait */
    (void)sigemptyset(&resized);
    (void)sigaddset(&resized, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &resized, NULL);
    for (;;) {
        status = options->all ? print_all(options) : print_one(cli, options);
        if (status == EX_UNAVAILABLE || status == EX_TEMPFAIL) {
            cli_disconnect(cli);
        } else if (status != EX_OK && status != STATUS_EXIT_UNHEALTHY) {
            return status;
        }
        if (cli_flush() != EX_OK) {
            return EX_IOERR;
        }
        (void)sigtimedwait(&resized, NULL, &interval);
    }
}

/* Accepts "--watch 5" for --watch=5: leat status has no operands. Returns NULL if no value is
 * given.
 */
static const char *value_of(const struct status_options *options, const char *value)
{
    const char *word = options->words[optind];

    if (value || !word || *word == '-') {
        return value;
    }
    optind++;
    return word;
}

static int take_interval(const struct cli *cli, const struct cli_option *option, const char *value)
{
    struct status_options *options = option->context;

    value = value_of(options, value);
    options->interval_ms = DEFAULT_INTERVAL_MS;
    if (value &&
        (units_parse_duration(value, &options->interval_ms) != 0 || options->interval_ms < 100)) {
        return cli_usage(
            cli,
            "%s: invalid interval '%s'; use whole seconds, such as 5, or a duration of at least "
            "100ms, such as 500ms",
            option->name, value);
    }
    return EX_OK;
}

static int take_lanes(const struct cli *cli, const struct cli_option *option, const char *value)
{
    struct status_options *options = option->context;

    value = value_of(options, value);
    options->lanes = DEFAULT_LANES;
    if (!value) {
        return EX_OK;
    }
    if (units_parse_integer(value, 1, MOST_LANES, &options->lanes) != 0) {
        return cli_usage(cli, "%s: invalid number '%s'; use a whole number from 1 to %d",
                         option->name, value, MOST_LANES);
    }
    return EX_OK;
}

/* Shows all queues if there are several and none is named. */
static int choose_queues(const struct cli *cli, struct status_options *options)
{
    char **names;
    int error;

    if (options->all && (cli->source.file || cli->source.queue || cli->source.url)) {
        return cli_usage(cli, "give --all or one queue, not both");
    }
    if (!options->all && queues_is_open(cli)) {
        size_t count = queues_list(&names, &error);
        options->all = count > 1;
        queues_free(names, count);
    }
    return options->all && options->lanes > 0
               ? cli_usage(cli, "--lanes shows the lanes of one queue; name it with -q")
               : EX_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct status_options options = {.limits = {-1, -1, -1}, .words = argv};
    const struct cli_option known[] = {
        {"--all", .flag = &options.all},
        {"--json", .flag = &options.json},
        {"--watch", .value = CLI_MAY_HAVE_VALUE, .take = take_interval, .context = &options},
        {"--lanes", .value = CLI_MAY_HAVE_VALUE, .take = take_lanes, .context = &options},
        {"--max-ready", .number = &options.limits.max_ready},
        {"--max-oldest", .duration_ms = &options.limits.max_oldest_ms},
        {"--max-dead", .number = &options.limits.max_dead},
        {0},
    };
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, known);

    if (status != EX_OK) {
        return status;
    }
    status = choose_queues(cli, &options);
    if (status != EX_OK) {
        return status;
    }
    if (options.interval_ms > 0) {
        return watch(cli, &options);
    }
    return options.all ? print_all(&options) : print_one(cli, &options);
}

const struct subcommand status_command = {
    "status", "Show tasks, workers and health; also a health check", help, run};
