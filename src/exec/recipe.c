#include "exec/recipe.h"

#include <stdlib.h>
#include <string.h>

#include "exec/mounts.h"
#include "exec/words.h"

/* The absolute path that the command begins with, if no shell would read it as anything else.
 * Returns 0, or -1 without memory. */
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

struct recipe *recipe_new(const struct config *config, const char *worker)
{
    const struct config_task *task = &config->task;
    struct recipe *recipe = calloc(1, sizeof *recipe);
    if (!recipe) {
        return NULL;
    }
    recipe->config = config;
    recipe->environment = environment_new(config, worker);
    if (!recipe->environment) {
        goto fail;
    }

    /* dash gives '%' in PATH a meaning of its own, and shells have defaults for an empty one */
    char *slash = strrchr(task->shell, '/');
    recipe->shell_name = slash ? slash + 1 : task->shell;
    recipe->direct = strcmp(task->shell, "/bin/sh") == 0 && task->path && task->path[0] &&
                     !strchr(task->path, '%');

    if (task->command) {
        if (find_program(task->command, &recipe->program)) {
            goto fail;
        }
        if (recipe->direct) {
            recipe->words = words_split(task->command, strlen(task->command));
        }
    }
    recipe_look(recipe);
    return recipe;

fail:
    recipe_free(recipe);
    return NULL;
}

void recipe_look(struct recipe *recipe)
{
    const struct config_task *task = &recipe->config->task;
    recipe->may_hang = recipe->may_hang || mounts_is_remote(task->directory) ||
                       mounts_is_remote(task->shell) ||
                       (recipe->program && mounts_is_remote(recipe->program));
}

void recipe_free(struct recipe *recipe)
{
    if (!recipe) {
        return;
    }
    environment_free(recipe->environment);
    free(recipe->words);
    free(recipe->program);
    free(recipe);
}
