/*
 * Tasks on the command line: what the parts of leat enqueue share with each other and with leat
 * run.
 */
#ifndef LEAT_CLI_ENQUEUE_ENQUEUE_H
#define LEAT_CLI_ENQUEUE_ENQUEUE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "cli/enqueue/draft.h"
#include "cli/enqueue/signing.h"
#include "cli/lib/cli.h"
#include "queue/replies.h"

#define TASK_VALID_MS (INT64_C(86400) * 1000)
#define TASK_VALID_MOST_MS                                                                         \
    (365 * TASK_VALID_MS) /* a day less than workers accept, because clocks differ */

/* Redis takes no longer values. */
#define ENQUEUE_MOST_BYTES ((size_t)512 << 20)
#define ENQUEUE_TOO_LONG "longer than 512 MiB, which Redis does not take"

enum enqueue_input { ENQUEUE_ONE, ENQUEUE_NULL, ENQUEUE_JSON };

struct enqueue_options {
    struct draft common; /* fields of every task */
    const char *file; /* the source of tasks; "-" is stdin; NULL: one task from the command line */
    enum enqueue_input input;
    const char *line_field;   /* the field that a line of the file becomes; NULL: as it follows */
    const char *payload_file; /* "-" is stdin; NULL: none */
    char due[32];             /* for leat_enqueue */
    bool quiet, json;
    struct buffer command; /* the words of the command, joined; empty: none */
    struct buffer payload;
    char expires[32];
    const char *sign;      /* for signer_open; NULL: as configured */
    int64_t valid_ms;      /* 0: TASK_VALID_MS */
    struct signer *signer; /* NULL: tasks are not signed */
};

/* ---- options that leat run also takes (task_options.c) ---- */

/* Their context is a struct enqueue_options. */
extern const struct cli_option task_options[];

/* Takes the value as the payload, or "-" for stdin. */
cli_take task_take_payload;

/* clang-format off */
#define TASK_OPTIONS_HELP                                                                          \
    "  --payload TEXT       pass TEXT to the task's stdin; '-' passes leat's stdin\n"              \
    "  --payload-file FILE  pass the content of FILE to the task's stdin\n"                        \
    "  --field NAME=VALUE   add a field; the task sees it as $TASK_NAME\n"                         \
    "  --id ID              label the task; nothing is added while a task with this\n"             \
    "                       label is in the queue\n"                                               \
    "  --lane NAME          put the task into this lane; lanes take turns. '' means\n"             \
    "                       no lane\n"                                                             \
    "  --unique KEY         add nothing while a task with this key is waiting or\n"                \
    "                       running\n"                                                             \
    "  --unique-for DUR     refuse the key for this long after a success, too\n"                   \
    "  --unique-next        if the task with the key is running, queue one more task\n"            \
    "                       to follow it\n"                                                        \
    "  --delay DURATION     start no earlier than DURATION from now, such as 5m\n"                 \
    "  --at TIME            start no earlier than TIME: 2026-01-31T12:00:00Z,\n"                   \
    "                       '2026-01-31 12:00' (local time) or @SECONDS\n"                         \
    "  --directory DIR      start in DIR, an absolute path on the worker's host\n"                 \
    "  --timeout DURATION   stop an attempt that runs longer; 0 means no limit\n"                  \
    "  --max-attempts N     give up after N attempts\n"                                            \
    "  --max-output SIZE    limit the output of an attempt, such as 1M\n"                          \
    "  --result-ttl DUR     keep the result for this long, for leat wait\n"                        \
    "  --expires WHEN       dead-letter the task if it has not started by WHEN, a\n"               \
    "                       duration or a time; later than --delay or --at\n"                      \
    "  --sign NAME[:FILE]   sign with this key of the configuration, or of FILE\n"                 \
    "  --valid DURATION     how long the signature is valid once the task is due\n"                \
    "                       (default: 1d)\n"
/* clang-format on */

/* Adds a field to every task. The value is not copied. Returns 0 or an exit status. */
int task_add_text(struct enqueue_options *options, const char *name, const char *value);

/* Call it after the options: reads the file or stdin that the payload comes from, if any. Returns
 * 0, or an exit status after printing the error. */
int task_read_payload(struct enqueue_options *options);

/* Call it after the options, in place of task_read_payload: joins the command, which begins at
 * optind, reads the payload and opens the signer. Returns 0, or an exit status after printing the
 * error. */
int task_complete(struct cli *cli, struct enqueue_options *options, int argc, char **argv);

/* Adds the trace context of the environment, checks the task as leatd does, and signs it. Returns
 * true, or false with the reason why leatd would refuse it. */
bool task_ready(const struct cli *cli, const struct enqueue_options *options, struct draft *draft,
                char *reason, size_t reason_size);

/* Checks, signs and enqueues the task, and connects for that. Sets *is_new, and tid to the id of
 * the task, or of the one that was in the queue before. Returns 0, or an exit status after printing
 * the error. */
int task_enqueue(struct cli *cli, struct enqueue_options *options, char tid[QUEUE_CURSOR_SIZE],
                 bool *is_new);

void task_options_free(struct enqueue_options *options);

/* ---- only for leat enqueue ---- */

/* Enqueues all tasks of the file. Returns an exit status. */
int enqueue_bulk(struct cli *cli, const struct enqueue_options *options);

/* Prints the result for one task. label: the id that it was given; size 0: none. */
void enqueue_print(const struct enqueue_options *options, bool is_new, struct bytes tid,
                   struct bytes label);

#endif
