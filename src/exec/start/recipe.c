/*
 * Computes what the config says about starting tasks.
 */
#include "exec/start/recipe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/process/mounts.h"
#include "exec/start/words.h"

/* Sets *program to the absolute path with which the command begins, if a shell would read it as
 * that path; or to NULL. Returns 0, or -1 without memory. */
static int find_program(const char *command, char **program)
{
    size_t size = strspn(command, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_./=:,@%+-");
    *program = NULL;
    if (command[0] != '/' || (command[size] != '\0' && !strchr(" \t\n;|&<>", command[size]))) {
        return 0;
    }
    *program = strndup(command, size);
    return *program ? 0 : -1;
}

/* Returns 0, or -1 without memory. */
static int make_line(struct recipe_line *line, char *text, bool direct)
{
    line->text = text;
    if (!text) {
        return 0;
    }
    if (find_program(text, &line->program)) {
        return -1;
    }
    if (direct) {
        line->words = words_split(text, strlen(text));
    }
    return 0;
}

/* Returns true if directory is "/" and leatd is there. Only for "/" is it certain that the path
 * still means leatd's own directory when the next task starts. */
static bool is_at_root(const char *directory)
{
    char here[2];
    return strcmp(directory, "/") == 0 && getcwd(here, sizeof here) && strcmp(here, "/") == 0;
}

/* Returns the directory in which tasks without their own start. */
static const char *directory_of(const struct recipe *recipe)
{
    const char *configured = recipe->config->task.directory;
    return configured ? configured : environment_home(recipe->environment);
}

struct recipe *recipe_new(const struct config *config, const char *worker)
{
    const struct config_task *task = &config->task;
    struct recipe *recipe = calloc(1, sizeof *recipe);
    if (!recipe) {
        return NULL;
    }
    recipe->config = config;
    recipe->identity = identity_new(task);
    if (!recipe->identity) {
        goto fail;
    }
    recipe->environment = environment_new(config, recipe->identity, worker);
    if (!recipe->environment) {
        goto fail;
    }
    /* children inherit it if the daemon has it */
    recipe->no_new_privileges =
        task->no_new_privileges && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;

    /* direct execution must find the same program as the shell: dash treats '%' in PATH specially,
     * and shells have a default for an empty PATH */
    char *slash = strrchr(task->shell, '/');
    recipe->shell_name = slash ? slash + 1 : task->shell;
    recipe->is_home = !task->directory;
    recipe->directory = is_at_root(directory_of(recipe)) ? NULL : directory_of(recipe);
    recipe->direct = strcmp(task->shell, "/bin/sh") == 0 && task->path && task->path[0] &&
                     !strchr(task->path, '%');

    if (make_line(&recipe->command, task->command, recipe->direct) ||
        make_line(&recipe->check, task->check, recipe->direct)) {
        goto fail;
    }
    allowance_make(&recipe->allowance, config);
    if (config->security.commands == CONFIG_COMMANDS_LISTED) {
        recipe->commands = commands_new(&config->command);
        if (!recipe->commands) {
            goto fail;
        }
    }
    recipe_check_mounts(recipe);
    return recipe;

fail:
    recipe_free(recipe);
    return NULL;
}

static bool is_remote(const char *program)
{
    return program && mounts_is_remote(program);
}

static bool is_any_remote(const struct commands *commands)
{
    const char *program;
    for (size_t i = 0; commands && (program = commands_program(commands, i)); i++) {
        if (program[0] == '/' && is_remote(program)) {
            return true;
        }
    }
    return false;
}

void recipe_check_mounts(struct recipe *recipe)
{
    const struct config_task *task = &recipe->config->task;
    recipe->may_hang = recipe->may_hang || is_remote(directory_of(recipe)) ||
                       is_remote(task->shell) || is_remote(recipe->command.program) ||
                       is_remote(recipe->check.program) || is_any_remote(recipe->commands);
}

void recipe_free(struct recipe *recipe)
{
    if (!recipe) {
        return;
    }
    environment_free(recipe->environment);
    identity_free(recipe->identity);
    commands_free(recipe->commands);
    free(recipe->command.words);
    free(recipe->command.program);
    free(recipe->check.words);
    free(recipe->check.program);
    free(recipe);
}
