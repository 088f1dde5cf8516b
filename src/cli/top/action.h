/*
 * Actions of leat top on a queue: a question, and the command of leat that is run if the answer is
 * yes.
 */
#ifndef LEAT_CLI_TOP_ACTION_H
#define LEAT_CLI_TOP_ACTION_H

#include <stdbool.h>

#include "base/buffer.h"
#include "cli/top/child.h"

/* Set loop, changed and context once. */
struct action {
    struct ev_loop *loop;
    void (*changed)(void *context); /* the command has ended, and `told` is what it says */
    void *context;

    /* the rest is read only */
    struct config_source source;
    const struct subcommand *command;
    char *words[CHILD_WORDS + 1]; /* owned */
    struct buffer question;       /* escaped; empty: nothing is asked */
    struct child *child;          /* NULL: no command runs */
    struct buffer told;           /* its last line, escaped; or empty */
    struct buffer output;
    bool failed; /* the command */
};

/* Asks: the question is printed, and words is ended by NULL. Does nothing while a command runs. */
void action_ask(struct action *action, const struct config_source *source,
                const struct subcommand *command, const char *const *words, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Takes the answer: runs the command, or forgets it. */
void action_answer(struct action *action, bool yes);

/* Tells something, as a command would. */
void action_tell(struct action *action, bool failed, const char *text);

void action_free(struct action *action);

#endif
