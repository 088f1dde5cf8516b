/*
 * leat pause and leat resume.
 */
#include <stdio.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/control/pauses.h"
#include "cli/lib/output.h"
#include "cli/status/status.h"
#include "view/moment.h"
#include "view/reply_fields.h"

#define WAIT_STEP_MS 250

static const char pause_help[] =
    "Usage: leat pause [OPTION]...\n"
    "Pause the queue: no worker starts a task. Running tasks continue, and new tasks\n"
    "wait until leat resume.\n"
    "\n"
    "Options:\n"
    "  --wait      return when no task is running\n"
    "  --json      print JSON: paused, changed, since_ms, running\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails pause --wait && migrate && leat -q thumbnails resume\n"
    "\n"
    "Exit codes:\n"
    "  0   the queue is paused\n"
    "  64  wrong usage\n"
    "  69  Redis cannot be reached\n"
    "  74  the output cannot be written\n"
    "  75  Redis is busy, or the queue was resumed during --wait\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong\n";

static const char resume_help[] = "Usage: leat resume [OPTION]...\n"
                                  "Let a paused queue start tasks again, at once.\n"
                                  "\n"
                                  "Options:\n"
                                  "  --json      print JSON: paused, changed\n"
                                  "  -q, -c, -h  see leat --help\n"
                                  "\n"
                                  "Examples:\n"
                                  "  leat -q thumbnails resume\n"
                                  "\n"
                                  "Exit codes:\n"
                                  "  0   the queue is not paused\n"
                                  "  64  wrong usage\n" CLI_EXITS;

struct paused {
    int64_t since_ms; /* 0: not paused */
    int64_t running, now_ms;
};

static int read_paused(struct cli *cli, struct paused *paused)
{
    int status;
    struct redisReply *reply = status_call(cli, &status);

    if (!reply) {
        return status;
    }
    paused->now_ms = fields_integer(reply->element[1], 0);
    paused->running = fields_number(reply->element[2], "running", 0);
    paused->since_ms = fields_stamp(fields_bytes(reply->element[4], "paused"), NULL);
    freeReplyObject(reply);
    return EX_OK;
}

/* Waits until no task runs. Fails if somebody resumes the queue. */
static int wait_until_idle(struct cli *cli, struct paused *paused)
{
    const struct timespec step = {.tv_nsec = WAIT_STEP_MS * CLOCK_NS_PER_MS};
    int status = EX_OK;

    while (status == EX_OK && paused->running > 0) {
        if (paused->since_ms == 0) {
            cli_error("the queue was resumed meanwhile; running tasks: %lld",
                      (long long)paused->running);
            return EX_TEMPFAIL;
        }
        (void)nanosleep(&step, NULL); /* a signal may cut it short */
        status = read_paused(cli, paused);
    }
    return status;
}

static int print_paused(const struct paused *paused, bool changed, bool json)
{
    char time[MOMENT_SIZE];

    if (json) {
        return output_json(json_pack("{s:b, s:b, s:I, s:I}", "paused", 1, "changed", (int)changed,
                                     "since_ms", (json_int_t)paused->since_ms, "running",
                                     (json_int_t)paused->running),
                           true);
    }
    moment_relative(paused->since_ms, paused->now_ms, time, sizeof time);
    /* cli_flush reports failures */
    if (changed) {
        (void)printf("paused");
    } else {
        (void)printf("already paused (%s)", time);
    }
    if (paused->running > 0) {
        (void)printf("; %lld task%s still run%s", (long long)paused->running,
                     paused->running == 1 ? "" : "s", paused->running == 1 ? "s" : "");
    }
    (void)puts(paused->running > 0 ? "" : "; no task runs");
    return EX_OK;
}

static int run_pause(struct cli *cli, int argc, char **argv)
{
    struct paused paused = {0};
    bool changed = false, wait = false, json = false;
    const struct cli_option options[] = {{"--wait", .flag = &wait}, {"--json", .flag = &json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);

    status = status == EX_OK ? cli_connect(cli) : status;
    status = status == EX_OK ? pauses_set(cli, "paused", true, &changed) : status;
    if (status != EX_OK) {
        return status;
    }
    status = read_paused(cli, &paused);
    if (status != EX_OK) {
        cli_error(
            "the queue is paused nevertheless: no worker starts a task; leat resume ends this");
    } else if (wait) {
        status = wait_until_idle(cli, &paused);
    }
    return status == EX_OK ? print_paused(&paused, changed, json) : status;
}

static int run_resume(struct cli *cli, int argc, char **argv)
{
    bool changed = false, json = false;
    const struct cli_option options[] = {{"--json", .flag = &json}, {0}};
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);

    status = status == EX_OK ? cli_connect(cli) : status;
    status = status == EX_OK ? pauses_set(cli, "paused", false, &changed) : status;
    if (status != EX_OK) {
        return status;
    }
    if (json) {
        return output_json(json_pack("{s:b, s:b}", "paused", 0, "changed", (int)changed), true);
    }
    /* cli_flush reports failures */
    (void)puts(changed ? "resumed" : "it was not paused");
    return EX_OK;
}

const struct subcommand pause_command = {"pause", "Stop all workers from starting tasks",
                                         pause_help, run_pause};
const struct subcommand resume_command = {"resume", "Let a paused queue start tasks again",
                                          resume_help, run_resume};
