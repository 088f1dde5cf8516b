/*
 * A command of leat in a child process, so that one that waits for Redis or for output does not
 * stop leat top. The child is a copy of this process that runs the function of the command.
 */
#ifndef LEAT_CLI_TOP_CHILD_H
#define LEAT_CLI_TOP_CHILD_H

#include "base/bytes.h"
#include "cli/lib/cli.h"

struct ev_loop;
struct child;

#define CHILD_WORDS 6 /* at most, of a command */

struct child_events {
    /* Takes what it writes to stdout and stderr, in order. */
    void (*output)(void *context, struct bytes bytes);
    /* It has ended with this exit status. May free the child. */
    void (*ended)(void *context, int status);
    void *context;
};

/* Starts the command with these words, of which the first is its name and the last is followed by
 * NULL. Events follow, never from within this call. Returns NULL with errno. */
struct child *child_start(struct ev_loop *loop, const struct config_source *source,
                          const struct subcommand *command, const char *const *words,
                          const struct child_events *events);

/* Kills it if it still runs. NULL does nothing. */
void child_free(struct child *child);

#endif
