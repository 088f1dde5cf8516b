/*
 * leat dead: selecting dead letters, and what its actions share.
 */
#ifndef LEAT_CLI_DEAD_DEAD_H
#define LEAT_CLI_DEAD_DEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/cli.h"
#include "cli/lib/progress.h"
#include "cli/lib/row_filter.h"
#include "cli/lib/table.h"
#include "cli/show/show.h"
#include "queue/entry_id.h"

struct dead_options {
    char **ids; /* of tasks or of dead letters' entries, or labels; none: the filters choose */
    size_t id_count;
    bool all, dry_run, yes, json, payload;
    struct row_filter filter;
    int64_t limit; /* of rows that are listed; 0: none */
};

/* The selected dead letters. Letters that are added after the selection do not belong to it, above
 * all those of retried tasks that die again. */
struct dead_choice {
    struct cli *cli;
    const struct dead_options *options;
    struct entry_id until; /* by filters: the last letter at the time of the selection */
    int64_t now_ms;        /* by filters: the server's clock */
    int64_t total;         /* by filters: the number of all letters */
    struct dead_letter
        *named; /* selected by ids, oldest first, each once; NULL: selected by filters */
    size_t named_count;
    size_t missing;           /* ids without a letter; their errors were printed */
    struct progress progress; /* of a walk by filters; drawn only if the caller began it */
};

/* Connects and selects. Only .progress of *choice may be set. Returns 0, or an exit status after
 * printing the error; then there is nothing to free. */
int dead_choose(struct cli *cli, const struct dead_options *options, struct dead_choice *choice);
void dead_choice_free(struct dead_choice *choice);

/* Called for each selected letter, oldest first. Returns true to continue. */
typedef bool dead_visit(void *context, const struct redisReply *row);

/* Visits all selected letters, as often as the caller likes. Returns 0, or an exit status after
 * printing the error. */
int dead_walk(struct dead_choice *choice, dead_visit *visit, void *context);

/* A table of letters, up to the limit. It is empty if only limit and now_ms are set. */
struct dead_table {
    int64_t limit, now_ms; /* limit 0: none */
    bool cut;
    struct table table;
};
/* Returns false if the limit is reached. */
bool dead_table_add(struct dead_table *dead, const struct redisReply *row);
/* Prints the table, or "no dead letters" if it is empty. Returns 0, or an exit status after
 * printing the error. */
int dead_table_print(const struct dead_table *dead);
void dead_table_free(struct dead_table *dead);

/* The actions. Each returns an exit status. */
int dead_list(struct cli *cli, const struct dead_options *options);
int dead_show(struct cli *cli, const struct dead_options *options);
int dead_act(struct cli *cli, const struct dead_options *options, bool retry);

#endif
