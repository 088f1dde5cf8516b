/*
 * leat enqueue: what its parts share.
 */
#ifndef LEAT_CLI_ENQUEUE_H
#define LEAT_CLI_ENQUEUE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "cli/cli.h"
#include "cli/draft.h"

enum enqueue_input { ENQUEUE_ONE, ENQUEUE_LINES, ENQUEUE_NULL, ENQUEUE_JSON };

struct enqueue_options {
    struct draft common; /* what every task gets */
    const char *file;    /* tasks come from there; "-" is stdin; NULL: one task */
    enum enqueue_input input;
    const char *payload_file; /* "-" is stdin; NULL: none */
    char due[32];             /* as leat_enqueue takes it */
    bool quiet, json;
    struct buffer command; /* the task's own, joined; empty: none */
    struct buffer payload;
    char expires[32];
};

/* Enqueues all that the file holds. Returns an exit status. */
int enqueue_bulk(struct cli *cli, const struct enqueue_options *options);

/* Prints one answer of leat_enqueue. label: the task's own id, size 0 for none. */
void enqueue_print(const struct enqueue_options *options, bool is_new, struct bytes tid,
                   struct bytes label);

#endif
