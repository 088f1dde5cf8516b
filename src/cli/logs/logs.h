/*
 * leat logs: the output of a task, from this host's journal or from its file.
 */
#ifndef LEAT_CLI_LOGS_LOGS_H
#define LEAT_CLI_LOGS_LOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "queue/task.h"

#define LOGS_NOTHING 1       /* exit status: no output was found */
#define LOGS_ELSEWHERE (-2)  /* no exit status: the task runs on another host, see logs_task */
#define LOGS_ALL INT64_C(-1) /* lines */

struct logs_options {
    bool follow, times, json;
    int64_t lines;         /* show only this many last lines; LOGS_ALL */
    int64_t attempt;       /* show only this attempt; 0: all */
    const char *directory; /* of journal files; NULL: this host's journal */
};

/* The task, as far as Redis knows it. */
struct logs_task {
    char *tid;           /* owned; what was typed until the task is found */
    bool found;          /* by Redis or in the journal */
    bool live;           /* it has not ended, or Redis cannot be reached */
    bool known;          /* Redis has answered */
    bool refused;        /* Redis refuses to answer: do not ask again */
    bool elsewhere;      /* when Redis was asked last, it ran on another host */
    bool no_journal;     /* its output would be in this host's journal, and there is none */
    int64_t attempts;    /* that have started; 0: none, or unknown */
    struct buffer hosts; /* of its attempts, separated by ", " */
    int64_t ask_ns;      /* CLOCK_BOOTTIME of the next question to Redis */
};

/* Returns true if the task has ended. Asks Redis, at most once per second, and reconnects if
 * necessary. */
bool logs_has_ended(struct cli *cli, struct logs_task *task);

/* Finds the newest task in the journal with a label that Redis no longer knows. */
void logs_resolve_label(const struct cli *cli, struct logs_task *task,
                        const struct logs_options *options);

/* Print the task's output; with follow, until the task has ended. Return 0, LOGS_NOTHING if there
 * is no output, or another exit status after printing the error. While the journal of this host has
 * no output of it, following it there stops with LOGS_ELSEWHERE if it runs on another host. */
int logs_show_journal(struct cli *cli, struct logs_task *task, const struct logs_options *options);
int logs_show_file(struct cli *cli, struct logs_task *task, const struct logs_options *options,
                   int fd);

/* Prints the output of a task that runs on another host, through Redis, until it has ended. Returns
 * 0, or an exit status after printing the error. */
int logs_follow_elsewhere(struct cli *cli, const struct logs_task *task,
                          const struct logs_options *options);

/* ---- printing */

struct logs_line {
    struct bytes text; /* without the newline */
    bool cut;          /* the next line of this stream continues it */
    bool is_error;     /* it came from stderr */
    int64_t attempt;   /* −1: unknown */
    int64_t at_us;     /* Unix time; −1: unknown */
    struct bytes host;
};

struct logs_printer {
    const struct logs_options *options;
    struct output output;
    bool error_terminal; /* stderr is a terminal */
    int64_t attempt;     /* of the last line */
    int open;            /* stream of the last line if it was not ended: 1, 2; or 0 */
    size_t printed;      /* lines that were printed */
};

void logs_printer_init(struct logs_printer *printer, const struct logs_options *options);

/* Prints a line. On a terminal, both streams go to stdout in order, with control characters
 * escaped; otherwise each stream is copied byte by byte. Returns 0, or an exit status after
 * printing the error; cli_flush reports write errors. */
int logs_print(struct logs_printer *printer, const struct logs_line *line);

/* Prints bytes of a stream, whose line may go on in the next ones. at_us and host are unknown.
 * Returns as logs_print. */
int logs_print_bytes(struct logs_printer *printer, struct bytes data, bool is_error,
                     int64_t attempt);

/* Ends a line that is open. */
void logs_print_end(struct logs_printer *printer);

#endif
