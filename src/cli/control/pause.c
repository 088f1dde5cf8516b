/*
 * leat pause and leat resume.
 */
#include <stdio.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/control/pauses.h"
#include "cli/lib/moment.h"
#include "cli/lib/output.h"
#include "cli/lib/reply_fields.h"
#include "cli/status/status.h"

#define WAIT_STEP_MS 250

static const char pause_help[] =
    "Usage: leat pause [--wait] [--json]\n"
    "Pause the queue: no worker starts a task any more, however it came. Running ones go on,\n"
    "and what is enqueued waits.\n"
    "\n"
    "  --wait      until nothing runs any more\n"
    "  --json      as JSON: paused, changed, since_ms, running\n"
    "  -q, -c, -h  as in leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails pause --wait && migrate && leat -q thumbnails resume\n"
    "\n"
    "Exit codes: 0 paused, now or before; 64 usage; 69 Redis cannot be reached; 74 the output\n"
    "cannot be written; 75 Redis is busy, or the queue was resumed during --wait; 77 denied\n"
    "by Redis; 78 configuration.\n";

static const char resume_help[] =
    "Usage: leat resume [--json]\n"
    "Let a paused queue go on, at once.\n"
    "\n"
    "  --json      as JSON: paused, changed\n"
    "  -q, -c, -h  as in leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails resume\n"
    "\n"
    "Exit codes: 0 resumed, or it was not paused; 64 usage; 69 Redis cannot be reached; 74\n"
    "the output cannot be written; 75 Redis is busy; 77 denied by Redis; 78 configuration.\n";

static const struct option pause_options[] = {
    CLI_COMMON_OPTIONS,
    {"wait", no_argument, NULL, PAUSES_OPTION_WAIT},
    {"json", no_argument, NULL, PAUSES_OPTION_JSON},
    {0},
};
static const struct option resume_options[] = {
    CLI_COMMON_OPTIONS,
    {"json", no_argument, NULL, PAUSES_OPTION_JSON},
    {0},
};

struct paused {
    int64_t since_ms; /* 0: it is not */
    int64_t running, now_ms;
};

static int read_paused(struct cli *cli, struct paused *paused)
{
    int status;
    struct redisReply *reply = status_call(cli, &status);

    if (!reply)
        return status;
    paused->now_ms = fields_integer(reply->element[1], 0);
    paused->running = fields_number(reply->element[2], "running", 0);
    paused->since_ms = fields_stamp(fields_bytes(reply->element[4], "paused"), NULL);
    freeReplyObject(reply);
    return EX_OK;
}

/* Somebody else may resume it meanwhile. */
static int wait_until_idle(struct cli *cli, struct paused *paused)
{
    const struct timespec step = {.tv_nsec = WAIT_STEP_MS * CLOCK_NS_PER_MS};
    int status = EX_OK;

    while (status == EX_OK && paused->running > 0) {
        if (paused->since_ms == 0) {
            cli_error("the queue was resumed meanwhile: %lld tasks run",
                      (long long)paused->running);
            return EX_TEMPFAIL;
        }
        (void)nanosleep(&step, NULL); /* ends sooner by a signal */
        status = read_paused(cli, paused);
    }
    return status;
}

static int print_paused(const struct paused *paused, bool changed, bool json)
{
    char time[MOMENT_SIZE];

    if (json)
        return output_json(json_pack("{s:b, s:b, s:I, s:I}", "paused", 1, "changed", (int)changed,
                                     "since_ms", (json_int_t)paused->since_ms, "running",
                                     (json_int_t)paused->running),
                           true);
    moment_relative(paused->since_ms, paused->now_ms, time, sizeof time);
    /* failures show when stdout is flushed */
    if (changed)
        (void)printf("paused");
    else
        (void)printf("paused already (%s)", time);
    if (paused->running > 0)
        (void)printf("; %lld task%s still run%s", (long long)paused->running,
                     paused->running == 1 ? "" : "s", paused->running == 1 ? "s" : "");
    (void)puts(paused->running > 0 ? "" : "; nothing runs");
    return EX_OK;
}

static int run_pause(struct cli *cli, int argc, char **argv)
{
    struct pauses_options options;
    struct paused paused = {0};
    bool changed = false;
    int status = EX_OK;

    if (!pauses_read_options(cli, argc, argv, pause_options, &options, &status))
        return status;
    if (optind < argc)
        return cli_usage(cli, "unexpected word: %s", argv[optind]);
    status = cli_connect(cli);
    if (status == EX_OK)
        status = pauses_set(cli, "paused", true, &changed);
    if (status == EX_OK)
        status = read_paused(cli, &paused);
    if (status == EX_OK && options.wait)
        status = wait_until_idle(cli, &paused);
    return status == EX_OK ? print_paused(&paused, changed, options.json) : status;
}

static int run_resume(struct cli *cli, int argc, char **argv)
{
    struct pauses_options options;
    bool changed = false;
    int status = EX_OK;

    if (!pauses_read_options(cli, argc, argv, resume_options, &options, &status))
        return status;
    if (optind < argc)
        return cli_usage(cli, "unexpected word: %s", argv[optind]);
    status = cli_connect(cli);
    if (status == EX_OK)
        status = pauses_set(cli, "paused", false, &changed);
    if (status != EX_OK)
        return status;
    if (options.json)
        return output_json(json_pack("{s:b, s:b}", "paused", 0, "changed", (int)changed), true);
    /* failures show when stdout is flushed */
    (void)puts(changed ? "resumed" : "it was not paused");
    return EX_OK;
}

const struct subcommand pause_command = {"pause", "let no worker start a task", pause_help,
                                         run_pause};
const struct subcommand resume_command = {"resume", "let a paused queue go on", resume_help,
                                          run_resume};
