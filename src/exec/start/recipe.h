/*
 * What a config says about starting tasks, worked out once instead of at each start.
 */
#ifndef LEAT_EXEC_START_RECIPE_H
#define LEAT_EXEC_START_RECIPE_H

#include <stdbool.h>

#include "config/config.h"
#include "exec/start/allowance.h"
#include "exec/start/commands.h"
#include "exec/start/environment.h"
#include "exec/start/identity.h"

/* A shell line of the config. */
struct recipe_line {
    char *text;    /* points into the config; NULL: there is none */
    char **words;  /* owned; the line where it needs no shell, else NULL */
    char *program; /* owned; the line begins with this absolute path, or NULL */
};

struct recipe {
    const struct config *config;     /* not owned */
    struct identity *identity;       /* owned */
    struct environment *environment; /* owned */
    char *shell_name;                /* argv[0] of the shell; points into the config */
    const char *directory;           /* of tasks that bring none; NULL: leatd is there itself */
    struct recipe_line command, check;
    struct commands *commands; /* owned; NULL: tasks bring shell lines */
    struct allowance allowance;
    bool is_home;           /* the directory is the user's home, since the config has none */
    bool direct;            /* simple commands may be executed without the shell */
    bool no_new_privileges; /* to be set for each task */
    bool may_hang;          /* something on the way to exec is not on a local file system */
};

/* config must outlive it. Returns NULL without memory. */
struct recipe *recipe_new(const struct config *config, const char *worker);
/* Looks again whether a start may hang; for changes of the mounts. Once it may, that stays so. */
void recipe_look(struct recipe *recipe);

void recipe_free(struct recipe *recipe);

#endif
