/*
 * leat dead: which letters are meant, and what is done with them.
 */
#ifndef LEAT_CLI_DEAD_DEAD_H
#define LEAT_CLI_DEAD_DEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/cli.h"
#include "cli/lib/entry_id.h"
#include "cli/lib/progress.h"
#include "cli/lib/table.h"

struct dead_options {
    char **ids; /* tasks' ids or letters' entry ids; none: the filters choose */
    size_t id_count;
    bool all, dry_run, yes, json, payload;
    const char *cause, *lane, *command; /* NULL: any */
    int64_t older_ms, newer_ms;         /* −1: any */
    int64_t limit;                      /* of what is listed; 0: none */
};

struct dead_letter {
    char dead_id[48]; /* of the entry */
    char tid[48];     /* of the task */
};

/* Which letters are meant. What comes after they were chosen is none of them: a retried task that
 * dies again meanwhile above all. */
struct dead_choice {
    struct cli *cli;
    const struct dead_options *options;
    struct entry_id until; /* the last letter there was */
    int64_t now_ms, total; /* the server's clock, and how many letters there were */
    struct dead_letter
        *named; /* those that ids mean, oldest first, each once; NULL: the filters count */
    size_t named_count;
    size_t missing;           /* ids that mean no letter; that has been said */
    struct progress progress; /* of looking through them: drawn where it was begun */
};

/* Connects and looks. *choice is zeroed but for the progress. Returns 0 or an exit status; then
 * there is nothing to free. */
int dead_choose(struct cli *cli, const struct dead_options *options, struct dead_choice *choice);
void dead_choice_free(struct dead_choice *choice);

/* Called for each letter that is meant, oldest first; true goes on. */
typedef bool dead_visit(void *context, const struct redisReply *row);

/* The same choice may be walked through several times. Returns 0 or an exit status. */
int dead_walk(struct dead_choice *choice, dead_visit *visit, void *context);

/* What a row is about. */
struct dead_letter dead_letter(const struct redisReply *row);

/* A table of letters, row by row, cut at the limit. Zeroed but for limit and now_ms, it is empty.
 */
struct dead_table {
    int64_t limit, now_ms; /* limit 0: none */
    bool cut;
    struct table table;
};
/* False where the row is beyond the limit. */
bool dead_table_add(struct dead_table *dead, const struct redisReply *row);
/* Prints it; "no dead letters" where it is empty. Returns 0 or an exit status. */
int dead_table_print(const struct dead_table *dead);
void dead_table_free(struct dead_table *dead);

/* The actions; they return an exit status. */
int dead_list(struct cli *cli, const struct dead_options *options);
int dead_show(struct cli *cli, const struct dead_options *options);
int dead_act(struct cli *cli, const struct dead_options *options, bool retry);

#endif
