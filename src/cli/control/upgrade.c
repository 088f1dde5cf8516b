/*
 * leat upgrade: asks the running leatd of each queue to hand over to the installed program.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/answer.h"
#include "base/process/control_file.h"
#include "base/process/program.h"
#include "base/process/systemd_unit.h"
#include "base/units.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "cli/lib/text.h"

#define ANSWER_MS 60000 /* leatd waits half of it for the new program */
#define LOOK_MS 2000    /* between two looks at the unit's main process */
#define UNITS_SIZE 65536
#define UNIT_SIZE 256

static const char upgrade_help[] =
    "Usage: leat upgrade [OPTION]...\n"
    "Replace the running leatd of each queue on this host by the installed program,\n"
    "while its tasks go on. The new leatd takes all new tasks; the former one\n"
    "finishes its own, and then ends. Both together use the slots of the queue.\n"
    "\n"
    "If the new program does not work, nothing changes, and the error says why.\n"
    "Settings of the unit take effect with systemctl restart only. Needs root, and\n"
    "systemd; does not contact Redis.\n"
    "\n"
    "Options:\n"
    "  -q, -c, -h  see leat --help; without -q and -c, all queues that run here\n"
    "\n"
    "Examples:\n"
    "  leat upgrade\n"
    "  leat -q thumbnails upgrade\n"
    "\n"
    "Exit codes:\n"
    "  0   each leatd that runs here was replaced\n"
    "  64  wrong usage\n"
    "  69  systemd cannot be reached, or the queue does not run on this host\n"
    "  70  the installed program cannot take over; the former one goes on\n"
    "  71  the system refused a call\n"
    "  74  the output cannot be written\n"
    "  76  the running leatd is too old to be replaced without a restart\n"
    "  77  you are not root\n";

/* A version that knows this signal never lets it end the process: it blocks it. Others would die.
 */
static int check_signal(const char *unit, pid_t pid)
{
    char path[32], text[4096];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid); /* fits */
    if (control_file_read_at(AT_FDCWD, path, text, sizeof text) < 0) {
        int status = errno == ENOENT ? EX_UNAVAILABLE : EX_OSERR;
        cli_error("%s: cannot read %s: %s", unit, path, strerror(errno));
        return status;
    }
    const char *blocked = strstr(text, "\nSigBlk:");
    uint64_t mask = blocked ? strtoull(blocked + strlen("\nSigBlk:"), NULL, 16) : 0;
    if (!(mask & (UINT64_C(1) << (SIGUSR2 - 1)))) {
        cli_error("%s: the running leatd is too old to be replaced; run: systemctl restart %s",
                  unit, unit);
        return EX_PROTOCOL;
    }
    return EX_OK;
}

/* Returns the process id of the unit's leatd, or 0 after printing the error. */
static pid_t find_process(const char *unit, struct systemd_unit *state, int *status)
{
    int64_t pid;
    *status = EX_UNAVAILABLE;
    if (systemd_unit_show(unit, state)) {
        cli_error("%s: systemd does not answer", unit);
    } else if (units_parse_integer(state->main_pid, 1, INT32_MAX, &pid)) {
        cli_error("%s: does not run; start it: systemctl start %s", unit, unit);
    } else {
        *status = check_signal(unit, (pid_t)pid);
        return *status == EX_OK ? (pid_t)pid : 0;
    }
    return 0;
}

/* Prints the answer: + and the new version, if it is known, or - and why nothing has changed. */
static int print_answer(const char *unit, const struct systemd_unit *state, const char *answer)
{
    if (answer[0] != '+') {
        cli_error("%s: not upgraded: %s", unit, answer + (answer[0] == '-'));
        return EX_SOFTWARE;
    }
    struct buffer line = BUFFER_INIT;
    /* a failed append marks the buffer */
    (void)buffer_printf(&line, "%s: upgraded%s", unit, answer[1] ? " to version " : "");
    (void)text_append(&line, answer + 1, strlen(answer + 1));
    (void)buffer_append_text(&line, "\n");
    int status = output_write(&line);
    buffer_free(&line);
    if (strcmp(state->needs_reload, "yes") == 0) {
        cli_error("%s: its settings have changed, which takes effect later; run: systemctl "
                  "daemon-reload && systemctl restart %s",
                  unit, unit);
    }
    return status;
}

/* Returns true if another process is the unit's main one now. */
static bool is_replaced(const char *unit, pid_t pid)
{
    struct systemd_unit state;
    int64_t now;
    return systemd_unit_show(unit, &state) == 0 &&
           units_parse_integer(state.main_pid, 1, INT32_MAX, &now) == 0 && now != pid;
}

/* Waits for the answer. Every program of this host can fill the socket, so that leatd's answer
 * finds no room; then the answer is "+" if systemd has heard of a new main process. Returns 0, or
 * -1 with errno. */
static int wait_for_answer(const char *unit, pid_t pid, int socket, char *answer, size_t size)
{
    for (int waited_ms = 0; waited_ms < ANSWER_MS; waited_ms += LOOK_MS) {
        if (answer_wait(socket, pid, LOOK_MS, answer, size) == 0) {
            return 0;
        }
        if (errno != ETIMEDOUT) {
            return -1;
        }
        if (is_replaced(unit, pid)) {
            (void)snprintf(answer, size, "+");
            return 0;
        }
    }
    errno = ETIMEDOUT;
    return -1;
}

static int upgrade_unit(const char *unit)
{
    struct systemd_unit state;
    char answer[512];
    int socket, status;
    pid_t pid = find_process(unit, &state, &status);
    if (pid == 0) {
        return status;
    }
    if (answer_ask(pid, SIGUSR2, &socket)) {
        bool denied = errno == EPERM;
        cli_error("%s: cannot signal process %d: %s%s", unit, (int)pid, strerror(errno),
                  denied ? "; run leat upgrade as root" : "");
        return denied ? EX_NOPERM : EX_OSERR;
    }
    if (wait_for_answer(unit, pid, socket, answer, sizeof answer)) {
        cli_error("%s: no answer: %s; see: journalctl -u %s", unit, strerror(errno), unit);
        status = EX_SOFTWARE;
    } else {
        status = print_answer(unit, &state, answer);
    }
    (void)close(socket);
    return status;
}

static int upgrade_all(void)
{
    char *const argv[] = {"systemctl",       "list-units",      "--type=service",
                          "--state=running", "--plain",         "--no-legend",
                          "--no-pager",      "leatd@*.service", NULL};
    char *text = malloc(UNITS_SIZE), *rest = NULL;
    int status = EX_OK;
    if (!text) {
        return cli_no_memory();
    }
    if (program_read(argv, text, UNITS_SIZE) != 0) {
        cli_error("cannot list the running queues: systemd does not answer");
        status = EX_UNAVAILABLE;
        *text = '\0';
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, " ")] = '\0';
        int result = upgrade_unit(line);
        status = result == EX_OK ? status : result;
    }
    free(text);
    return status;
}

/* The queue that the options name. */
static int upgrade_one(const struct cli *cli)
{
    char unit[UNIT_SIZE];
    char *path =
        cli->source.file ? strdup(cli->source.file) : config_source_queue_path(cli->source.queue);
    int status;
    if (!path) {
        return cli_no_memory();
    }
    if (config_source_unit(path, unit, sizeof unit)) {
        status = cli_usage(cli, "no unit runs the queue of %s; name the queue with -q", path);
    } else {
        status = upgrade_unit(unit);
    }
    free(path);
    return status;
}

static int run_upgrade(struct cli *cli, int argc, char **argv)
{
    const struct cli_option options[] = {{0}};
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);
    if (status != EX_OK) {
        return status;
    }
    if (cli->source.url) {
        return cli_usage(cli, "--redis cannot be used here; name the queue with -q");
    }
    return cli->source.file || cli->source.queue ? upgrade_one(cli) : upgrade_all();
}

const struct subcommand upgrade_command = {
    "upgrade", "Replace the running leatd while its tasks go on", upgrade_help, run_upgrade};
