/*
 * leat doctor: what is wrong with a queue, what that means, and putting it right.
 */
#include "cli/doctor/doctor.h"

#include "cli/lib/audit.h"

#define EXIT_LEFT 1
#define EXIT_REPAIRED 2

static const char help[] =
    "Usage: leat doctor [--repair] [--json]\n"
    "Look for what is wrong with the queue: Redis and its function library, workers that are\n"
    "gone, and keys that do not fit together, as after a deletion by hand. Each finding says what\n"
    "it means. Looking changes nothing, bears any load, and takes no memory worth mentioning.\n"
    "\n"
    "  --repair    put right what can be put right, one by one; no task is lost, and each finding\n"
    "              says what was done. Entries that somebody acknowledged by hand are put into\n"
    "              the queue again, and run\n"
    "  --json      the same as JSON\n"
    "  -q, -c, -h  as in leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails doctor\n"
    "  leat -q thumbnails doctor --repair --json | jq .left\n"
    "\n"
    "Exit codes: 0 nothing is wrong; 1 something is wrong, and left so; 2 all that was wrong has\n"
    "been repaired; 64 usage; 69 Redis cannot be reached; 77 denied by Redis; 78 configuration,\n"
    "or a key of the queue is something else.\n";

enum { OPTION_JSON = 256, OPTION_REPAIR };

static const struct option options_table[] = {
    CLI_COMMON_OPTIONS,
    {"json", no_argument, NULL, OPTION_JSON},
    {"repair", no_argument, NULL, OPTION_REPAIR},
    {0},
};

static int exit_status(const struct doctor_report *report)
{
    size_t repaired, left;

    doctor_sum(report, &repaired, &left);
    if (left > 0 || report->incomplete)
        return EXIT_LEFT;
    return repaired > 0 ? EXIT_REPAIRED : EX_OK;
}

static void record_repairs(const struct doctor_report *report)
{
    struct audit act = {.event = "operator-repair"};
    size_t left;

    doctor_sum(report, &act.count, &left);
    if (act.count > 0)
        audit_record(report->cli, &act, "repaired %zu finding%s, %zu left", act.count,
                     act.count == 1 ? "" : "s", left);
}

static int look(struct doctor_report *report, bool json)
{
    bool go_on;
    int printed, status = doctor_look_around(report, &go_on);

    report->incomplete = !go_on;
    if (status == EX_OK && go_on)
        status = doctor_look_through(report);
    record_repairs(report);
    /* what was found, and may have been repaired, before Redis went away is told in any case */
    if (status != EX_OK && !report->cli->client)
        return status;
    report->incomplete = report->incomplete || status != EX_OK;
    printed = doctor_print(report, json);
    if (status == EX_OK)
        status = printed;
    return status != EX_OK ? status : exit_status(report);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct doctor_report report;
    bool json = false, repair = false;
    int letter, status = EX_OK;

    while ((letter = cli_option(cli, argc, argv, ":" CLI_COMMON_LETTERS, options_table, &status)) !=
           CLI_OPTION_END) {
        if (letter == CLI_OPTION_STOP)
            return status;
        if (letter == OPTION_JSON)
            json = true;
        else
            repair = true;
    }
    if (optind < argc)
        return cli_usage(cli, "unexpected word: %s", argv[optind]);
    status = doctor_report_init(&report, cli, repair) == 0 ? look(&report, json) : cli_no_memory();
    doctor_report_free(&report);
    return status;
}

const struct subcommand doctor_command = {"doctor", "find what is wrong, and repair it", help, run};
