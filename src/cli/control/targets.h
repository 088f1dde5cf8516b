/*
 * The tasks that an operator names, for commands that act on each of them: ids, prefixes, labels,
 * or
 * "-" for ids on stdin; calls for many of them at once; the answers, as lines or JSON.
 */
#ifndef LEAT_CLI_CONTROL_TARGETS_H
#define LEAT_CLI_CONTROL_TARGETS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "cli/lib/audit.h"
#include "cli/lib/cli.h"
#include "queue/calls.h"

/* What an answer of Redis to a task means. The answer is the word, or the word, a blank and a
 * detail. "gone" and "later" are answers to all calls. */
struct target_answer {
    const char *word;   /* NULL ends a table */
    const char *state;  /* in JSON */
    const char *text;   /* of a line: "ID: TEXT"; of an error: "cannot VERB ID: TEXT". A '%s' in it
                           is the detail */
    const char *detail; /* the name of the detail in JSON; NULL: it is not printed there */
    bool acted;         /* the task was changed: for the audit record */
    bool is_error;      /* the exit status becomes EX_DATAERR */
};

struct target;

struct targets {
    struct cli *cli;
    const char *verb; /* "cancel" */
    bool json;
    const struct target_answer *answers;
    /* Begins the call; the tasks are added to it. */
    void (*begin)(void *context, struct command *command);
    void *context;
    struct audit done; /* with .event set */

    /* the rest is for targets.c; zero at first */
    struct buffer ids; /* each ends with a NUL */
    struct target *list;
    size_t count;
    int status; /* exit status of the last failure */
};

/* Connects, acts on all tasks, prints what happened to each, and frees what targets has. The caller
 * then writes the audit record if done.count is not 0. Returns an exit status. */
int targets_act(struct targets *targets, char *const *ids);

/* Prints that nothing was done to the task of this id. The error that says why was printed before.
 * Returns an exit status. */
int targets_print_failed(const char *id, bool json);

#endif
