/*
 * The recipe for starting tasks: what the config says about it, computed once instead of at each
 * start.
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
    char *text;    /* points into the config; NULL: not set */
    char **words;  /* owned; the words of a line that needs no shell; or NULL */
    char *program; /* owned; the absolute path with which the line begins; or NULL */
};

struct recipe {
    const struct config *config;     /* not owned */
    struct identity *identity;       /* owned */
    struct environment *environment; /* owned */
    char *shell_name;                /* argv[0] of the shell; points into the config */
    const char *directory;           /* of tasks without their own; NULL: leatd is in it itself */
    struct recipe_line command, check;
    struct commands *commands; /* owned; NULL: tasks bring shell lines */
    struct allowance allowance;
    bool is_home;           /* directory is the user's home: [task] directory is not set */
    bool direct;            /* simple commands may be executed without the shell */
    bool no_new_privileges; /* set it for each task; false if leatd has it itself */
    bool may_hang;          /* the directory or a program is on a file system that may hang */
};

/* Makes a recipe. config must outlive it. worker is the consumer's name for LEAT_WORKER, or NULL.
 * Returns NULL without memory. */
struct recipe *recipe_new(const struct config *config, const char *worker);

/* Updates may_hang after a change of the mounts. Once set, it stays set. */
void recipe_check_mounts(struct recipe *recipe);

void recipe_free(struct recipe *recipe);

#endif
