/*
 * leat logs: what a task has written, from this host's journal or from its file.
 */
#ifndef LEAT_CLI_LOGS_LOGS_H
#define LEAT_CLI_LOGS_LOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "queue/task.h"

#define LOGS_NOTHING 1       /* exit status */
#define LOGS_ALL INT64_C(-1) /* lines */

struct logs_options {
    bool follow, times, json;
    int64_t lines;         /* the last so many; LOGS_ALL */
    int64_t attempt;       /* only that one; 0: all */
    const char *directory; /* of journal files; NULL: this host's journal */
};

/* The task as far as Redis knows it. */
struct logs_task {
    char *tid; /* owned */
    bool live; /* it has not ended, or Redis could not be asked */
    bool known;
    bool refused;        /* Redis does not say, and will not */
    struct buffer hosts; /* on which it was tried, ", " between */
    int64_t ask_ns;      /* CLOCK_BOOTTIME: Redis is asked no sooner */
};

/* True where the task has ended; asks Redis, at most once a second, over a new connection where one
 * was lost. */
bool logs_has_ended(struct cli *cli, struct logs_task *task);

/* A label that Redis knows no more becomes the id of the newest task in the journal that had it,
 * where there is one. */
void logs_find_label(const struct cli *cli, struct logs_task *task,
                     const struct logs_options *options);

/* Where a task's lines are, or may come to be: prints them, and with follow goes on until it has
 * ended. Return 0, LOGS_NOTHING where there was none, or another exit status, having said why. */
int logs_show_journal(struct cli *cli, struct logs_task *task, const struct logs_options *options);
int logs_show_file(struct cli *cli, struct logs_task *task, const struct logs_options *options,
                   int fd);

/* ---- printing */

struct logs_line {
    struct bytes text; /* without its end */
    bool cut;          /* it goes on in the next of this stream */
    bool is_error;     /* it came from stderr */
    int64_t attempt;   /* −1: not known, as the others */
    int64_t at_us;     /* unix time */
    struct bytes host;
};

struct logs_printer {
    const struct logs_options *options;
    struct output output;
    bool error_terminal; /* stderr is one */
    int64_t attempt;     /* of the line before */
    int open;            /* what was printed last ends within a line: of stdout 1, stderr 2; or 0 */
    size_t printed;      /* lines */
};

void logs_printer_init(struct logs_printer *printer, const struct logs_options *options);

/* On a terminal all in order, and nothing that it would obey; else byte for byte, each stream to
 * its own. Returns 0 or an exit status; failures to write show when stdout is flushed. */
int logs_print(struct logs_printer *printer, const struct logs_line *line);

/* Ends a line that is open. */
void logs_print_end(struct logs_printer *printer);

#endif
