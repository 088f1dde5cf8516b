/*
 * Tasks on the command line: what the parts of leat enqueue share, and what leat run takes, too.
 */
#ifndef LEAT_CLI_ENQUEUE_ENQUEUE_H
#define LEAT_CLI_ENQUEUE_ENQUEUE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "cli/enqueue/draft.h"
#include "cli/enqueue/signing.h"
#include "cli/lib/cli.h"

#define TASK_VALID_MS (INT64_C(86400) * 1000)
#define TASK_VALID_MOST_MS (365 * TASK_VALID_MS) /* a day less than workers take: clocks differ */

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
    const char *sign;      /* as signer_open takes it; NULL: as the configuration says */
    int64_t valid_ms;      /* 0: TASK_VALID_MS */
    struct signer *signer; /* NULL: tasks are not signed */
};

/* ---- what leat run takes, too (task_options.c) ---- */

enum {
    TASK_OPTION_PAYLOAD = 256,
    TASK_OPTION_PAYLOAD_FILE,
    TASK_OPTION_FIELD,
    TASK_OPTION_ID,
    TASK_OPTION_DELAY,
    TASK_OPTION_AT,
    TASK_OPTION_TIMEOUT,
    TASK_OPTION_MAX_ATTEMPTS,
    TASK_OPTION_EXPIRES,
    TASK_OPTION_RESULT_TTL,
    TASK_OPTION_LANE,
    TASK_OPTION_MAX_OUTPUT,
    TASK_OPTION_UNIQUE,
    TASK_OPTION_UNIQUE_FOR,
    TASK_OPTION_UNIQUE_NEXT,
    TASK_OPTION_SIGN,
    TASK_OPTION_VALID,
    TASK_OPTION_END, /* where a command's own begin */
};

/* clang-format off */
#define TASK_OPTIONS                                                                               \
    {"payload", required_argument, NULL, TASK_OPTION_PAYLOAD},                                     \
    {"payload-file", required_argument, NULL, TASK_OPTION_PAYLOAD_FILE},                           \
    {"field", required_argument, NULL, TASK_OPTION_FIELD},                                         \
    {"id", required_argument, NULL, TASK_OPTION_ID},                                               \
    {"delay", required_argument, NULL, TASK_OPTION_DELAY},                                         \
    {"at", required_argument, NULL, TASK_OPTION_AT},                                               \
    {"timeout", required_argument, NULL, TASK_OPTION_TIMEOUT},                                     \
    {"max-attempts", required_argument, NULL, TASK_OPTION_MAX_ATTEMPTS},                           \
    {"max-output", required_argument, NULL, TASK_OPTION_MAX_OUTPUT},                               \
    {"expires", required_argument, NULL, TASK_OPTION_EXPIRES},                                     \
    {"result-ttl", required_argument, NULL, TASK_OPTION_RESULT_TTL},                               \
    {"lane", required_argument, NULL, TASK_OPTION_LANE},                                           \
    {"unique", required_argument, NULL, TASK_OPTION_UNIQUE},                                       \
    {"unique-for", required_argument, NULL, TASK_OPTION_UNIQUE_FOR},                               \
    {"unique-next", no_argument, NULL, TASK_OPTION_UNIQUE_NEXT},                                   \
    {"sign", required_argument, NULL, TASK_OPTION_SIGN},                                           \
    {"valid", required_argument, NULL, TASK_OPTION_VALID}

#define TASK_OPTIONS_HELP                                                                          \
    "  --payload TEXT       bytes for the task's stdin; - reads them from leat's stdin\n"          \
    "  --payload-file FILE  the same from a file\n"                                                \
    "  --field NAME=VALUE   a field more; the task finds it as $TASK_NAME\n"                       \
    "  --id ID              a label of your own: while a task with it lives, none is added\n"      \
    "  --lane NAME          the lane in which it waits: lanes take turns\n"                         \
    "  --unique KEY         while a task with that key waits or runs, none is added; exit 1\n"      \
    "  --unique-for DUR     nor for so long after it has succeeded\n"                               \
    "  --unique-next        while that one runs, one more is kept, which follows it\n"              \
    "  --delay DURATION     not before that long from now, such as 5m\n"                           \
    "  --at TIME            not before: 2026-01-31T12:00:00Z, '2026-01-31 12:00' (local), "        \
    "@SECONDS\n"                                                                                   \
    "  --timeout DURATION   end an attempt that runs longer\n"                                     \
    "  --max-attempts N     give up after so many\n"                                               \
    "  --max-output SIZE    end an attempt that writes more, or drop the rest\n"                    \
    "  --result-ttl DUR     keep what became of it so long, for leat wait\n"                       \
    "  --expires WHEN       a duration or a time; if not started by then, a dead letter;\n"        \
    "                       later than --delay or --at\n"                                         \
    "  --sign NAME[:FILE]   sign it with that key of the configuration, or of FILE; a queue\n"     \
    "                       that wants signatures has a key for it\n"                             \
    "  --valid DURATION     the signature is good so long once the task is due; 1d\n"
/* clang-format on */

/* Takes one of these, with its value in optarg. Returns 0 or EX_USAGE, as the others. */
int task_option(const struct cli *cli, struct enqueue_options *options, int letter);

/* A field more; the value is not copied. */
int task_add_text(struct enqueue_options *options, const char *name, const char *value);

/* After the options: the command, which begins at optind, the payload, and who signs. */
int task_complete(struct cli *cli, struct enqueue_options *options, int argc, char **argv);

/* Checks a task as leatd will, and signs it. Returns true, or false with the reason why it would be
 * refused. */
bool task_ready(const struct cli *cli, const struct enqueue_options *options, struct draft *draft,
                char *reason, size_t reason_size);

/* Checks the task, signs it, connects and enqueues it. Returns leat_enqueue's reply for
 * freeReplyObject, or NULL with *status set and the error printed. */
struct redisReply *task_enqueue(struct cli *cli, struct enqueue_options *options, int *status);

void task_options_free(struct enqueue_options *options);

/* ---- leat enqueue's own ---- */

/* Enqueues all that the file holds. Returns an exit status. */
int enqueue_bulk(struct cli *cli, const struct enqueue_options *options);

/* Prints one answer of leat_enqueue. label: the task's own id, size 0 for none. */
void enqueue_print(const struct enqueue_options *options, bool is_new, struct bytes tid,
                   struct bytes label);

#endif
