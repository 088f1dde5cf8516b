/*
 * leat, the command of operators and producers: parses the global options and runs a subcommand.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/process/standard_fds.h"
#include "cli/help/help.h"
#include "cli/lib/cli.h"

static const struct subcommand *const subcommands[] = {
    &enqueue_command, &import_command,  &export_command, &run_command,     &wait_command,
    &status_command,  &top_command,     &list_command,   &show_command,    &explain_command,
    &logs_command,    &dead_command,    &cancel_command, &move_command,    &edit_command,
    &now_command,     &pause_command,   &resume_command, &drain_command,   &undrain_command,
    &conf_command,    &doctor_command,  &init_command,   &destroy_command, &upgrade_command,
    &try_command,     &metrics_command, &report_command, &attach_command,
};
#define SUBCOMMAND_COUNT (sizeof subcommands / sizeof subcommands[0])

static const char usage_head[] =
    "Usage: leat [-c FILE | -q QUEUE] [--redis URL] COMMAND [OPTION]...\n"
    "Add shell commands to a job queue, and operate the queue.\n"
    "\n"
    "Commands:\n";

static const char usage_tail[] =
    "\n"
    "Options, before or after the command:\n"
    "  -q, --queue QUEUE  use the queue of " CONFIG_SOURCE_FOLDER "/QUEUE.ini\n"
    "  -c, --config FILE  use the queue of this configuration file\n"
    "  --redis URL        use this Redis server: redis://HOST[:PORT][/DB],\n"
    "                     rediss://HOST... for TLS, or unix:///PATH[?db=DB]\n"
    "  --password-file FILE  read the password for --redis or $LEAT_REDIS from FILE\n"
    "  -h, --help         print help; leat COMMAND --help is about one command\n"
    "  -V, --version      print the version\n"
    "\n"
    "Without -q and -c, leat uses the file in $LEAT_CONFIG, or the only *.ini "
    "in\n" CONFIG_SOURCE_FOLDER " ($LEAT_CONFIG_DIR replaces this folder).\n"
    "Without --redis and -c, leat uses the server in $LEAT_REDIS, a URL that may\n"
    "hold a password: redis://[USER]:PASSWORD@HOST. With a URL and -q, leat reads no\n"
    "file.\n"
    "\n"
    "Help:\n"
    "  leat help COMMAND  open the manual of a command\n"
    "  leat help ini      list the keys of configuration files\n"
    "  leat help ini KEY  explain a key: its meaning, type, range and default\n"
    "\n"
    "Exit codes:\n"
    "  0   success\n"
    "  1   not found, not healthy, or blocked\n"
    "  2   repaired; in the queue, but on too few replicas; or an unknown task\n"
    "  64  wrong usage\n"
    "  65  a task or a value was refused\n"
    "  69  Redis cannot be reached\n"
    "  74  the output cannot be written\n"
    "  75  the queue is full or Redis is busy; try again later\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong\n"
    "See leat(1) for more.\n";

static void print_help(FILE *file)
{
    /* cli_flush reports failures */
    (void)fputs(usage_head, file);
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) {
        (void)fprintf(file, "  %-9s %s\n", subcommands[i]->name, subcommands[i]->summary);
    }
    (void)fputs(usage_tail, file);
}

static const struct subcommand *find_subcommand(const char *name)
{
    const char *names[SUBCOMMAND_COUNT];
    char hint[64];

    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) {
        names[i] = subcommands[i]->name;
        if (strcmp(name, names[i]) == 0) {
            return subcommands[i];
        }
    }
    cli_suggest(name, names, SUBCOMMAND_COUNT, hint, sizeof hint);
    cli_error("unknown command: %s;%s see leat --help", name, hint);
    return NULL;
}

static bool is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* leat help [COMMAND | ini [KEY]] */
static int run_help(int argc, char **argv)
{
    const struct subcommand *subcommand;

    if (argc < 2) {
        print_help(stdout);
        return EX_OK;
    }
    if (strcmp(argv[1], "ini") == 0) {
        return help_ini(argc - 2, argv + 2);
    }
    if (argc > 2) {
        cli_error("unexpected argument: %s; see leat --help", argv[2]);
        return EX_USAGE;
    }
    if (is_help(argv[1])) {
        return help_usage();
    }
    subcommand = find_subcommand(argv[1]);
    return subcommand ? help_command(subcommand) : EX_USAGE;
}

static int run_subcommand(struct cli *cli, int argc, char **argv)
{
    if (strcmp(argv[0], "help") == 0) {
        return run_help(argc, argv);
    }
    cli->subcommand = find_subcommand(argv[0]);
    if (!cli->subcommand) {
        return EX_USAGE;
    }

    /* 0 resets getopt_long for the options of the command */
    optind = 0;
    return cli->subcommand->run(cli, argc, argv);
}

static int take_help(const struct cli *cli, const struct cli_option *option, const char *value)
{
    (void)cli;
    (void)option;
    (void)value;
    print_help(stdout);
    return CLI_STOP;
}

static int take_version(const struct cli *cli, const struct cli_option *option, const char *value)
{
    (void)cli;
    (void)option;
    (void)value;
    /* cli_flush reports failures */
    (void)printf("leat %s%s\n", LEAT_VERSION, LEAT_COMMIT);
    return CLI_STOP;
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option options[] = {
        {"--help", 'h', .value = CLI_NO_VALUE, .take = take_help},
        {"--version", 'V', .value = CLI_NO_VALUE, .take = take_version},
        {0},
    };
    int status = cli_options(cli, argc, argv, CLI_WORDS, options);

    if (status != EX_OK) {
        return status;
    }
    if (argc == 1) {
        print_help(stderr);
        return EX_USAGE;
    }
    if (optind >= argc) {
        return cli_usage(cli, "missing operand: give a command");
    }
    return run_subcommand(cli, argc - optind, argv + optind);
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    int status, flushed;

    if (standard_fds_open(false)) {
        return EX_OSERR; /* there is no stderr to report it to */
    }
    if (config_source_open(&cli.source) != 0) {
        return cli_no_memory();
    }
    /* a closed pipe is a write error, not a reason to be killed */
    (void)signal(SIGPIPE, SIG_IGN);

    status = run(&cli, argc, argv);
    /* a command that could not write has said so */
    flushed = status == EX_IOERR ? status : cli_flush();
    cli_free(&cli);
    if (flushed != EX_OK) {
        return flushed;
    }
    return status == CLI_STOP ? EX_OK : status;
}
