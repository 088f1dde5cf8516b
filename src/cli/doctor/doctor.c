/*
 * leat doctor: finds and repairs problems of a queue.
 */
#include "cli/doctor/doctor.h"

#include "cli/lib/audit.h"

#define EXIT_LEFT 1
#define EXIT_REPAIRED 2

static const char help[] =
    "Usage: leat doctor [OPTION]...\n"
    "Find problems of the queue: in Redis, in the function library, in workers that\n"
    "are gone, and in keys that do not match each other, as after a deletion by\n"
    "hand. Each problem is explained. Without --repair nothing is changed.\n"
    "\n"
    "Options:\n"
    "  --repair    repair what can be repaired, one finding at a time; no task is\n"
    "              lost. Entries that were acknowledged by hand run again\n"
    "  --json      print JSON\n"
    "  -q, -c, -h  see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails doctor\n"
    "  leat -q thumbnails doctor --repair --json | jq .left\n"
    "\n"
    "Exit codes:\n"
    "  0   no problems\n"
    "  1   problems were found, and some of them remain\n"
    "  2   all problems were repaired\n"
    "  64  wrong usage\n"
    "  69  Redis cannot be reached\n"
    "  74  the output cannot be written\n"
    "  75  Redis is busy; try again later\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong, or a key of the queue holds something else\n";

static int exit_status(const struct doctor_report *report)
{
    size_t repaired, left;

    doctor_sum(report, &repaired, &left);
    if (left > 0 || report->incomplete) {
        return EXIT_LEFT;
    }
    return repaired > 0 ? EXIT_REPAIRED : EX_OK;
}

static void record_repairs(const struct doctor_report *report)
{
    struct audit act = {.event = "operator-repair"};
    size_t left;

    doctor_sum(report, &act.count, &left);
    if (act.count > 0) {
        audit_record(report->cli, &act, "repaired %zu finding%s, %zu left", act.count,
                     act.count == 1 ? "" : "s", left);
    }
}

static int examine(struct doctor_report *report, bool json)
{
    bool go_on;
    int printed, status = doctor_examine_server(report, &go_on);

    report->incomplete = !go_on;
    if (status == EX_OK && go_on) {
        status = doctor_examine_keys(report);
    }
    record_repairs(report);
    /* print findings that were made, and repaired, before a connection broke */
    if (status != EX_OK && !report->cli->client) {
        return status;
    }
    report->incomplete = report->incomplete || status != EX_OK;
    printed = doctor_print(report, json);
    status = status == EX_OK ? printed : status;
    return status != EX_OK ? status : exit_status(report);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct doctor_report report;
    bool json = false, repair = false;
    const struct cli_option options[] = {
        {"--json", .flag = &json}, {"--repair", .flag = &repair}, {0}};
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    status =
        doctor_report_init(&report, cli, repair) == 0 ? examine(&report, json) : cli_no_memory();
    doctor_report_free(&report);
    return status;
}

const struct subcommand doctor_command = {"doctor", "Find and repair problems of the queue", help,
                                          run};
