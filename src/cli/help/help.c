/*
 * The manual of a command, shown by man.
 */
#include "cli/help/help.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "Usage: leat help [COMMAND | ini [KEY]]\n"
    "Open the manual of a command, or explain keys of configuration files. Without\n"
    "operands, list the commands.\n"
    "\n"
    "Examples:\n"
    "  leat help enqueue   open the manual of leat enqueue\n"
    "  leat help ini       list the keys of configuration files\n"
    "  leat help ini task  list the keys of a section\n"
    "  leat help ini KEY   explain a key: its meaning, type, range and default\n"
    "\n"
    "Exit codes:\n"
    "  0   success\n"
    "  64  wrong usage: there is no such command or key\n"
    "  74  the output cannot be written\n";

int help_usage(void)
{
    /* cli_flush reports failures */
    (void)fputs(usage, stdout);
    return EX_OK;
}

/* Runs man without output. Returns true if it exits with 0. */
static bool man_succeeds(char *const *argv)
{
    posix_spawn_file_actions_t actions;
    int status, error;
    pid_t child, ended;

    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    }
    if (error == 0) {
        error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions); /* always 0 */
    if (error != 0) {
        return false;
    }

    ended = waitpid(child, &status, 0);
    return ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Becomes man. Returns only if there is no such program or no such page. */
static void open_manual(const char *name)
{
    char page[32], man[] = "man", where[] = "-w", section[] = "1";

    /* names of commands are short */
    (void)snprintf(page, sizeof page, "leat-%s", name);
    if (!man_succeeds((char *[]){man, where, section, page, NULL})) {
        return;
    }

    /* main ignores SIGPIPE; the pager and its pipeline need the default */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)execvp(man, (char *[]){man, section, page, NULL}); /* returns only if it fails */
    (void)signal(SIGPIPE, SIG_IGN);
}

int help_command(const struct subcommand *subcommand)
{
    if (isatty(STDOUT_FILENO)) {
        open_manual(subcommand->name);
    }
    /* cli_flush reports failures */
    (void)fputs(subcommand->help, stdout);
    return EX_OK;
}
