/*
 * What the commands of leat share: the table of commands, their options, configuration and
 * connection, and how they fail. A command returns an exit status (sysexits.h, or what its help
 * says) after it has said on stderr why; main flushes stdout and frees what is in struct cli.
 */
#ifndef LEAT_CLI_LIB_CLI_H
#define LEAT_CLI_LIB_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <sysexits.h>

#include "config/config.h"
#include "config/file/source.h"
#include "queue/library_load.h"
#include "queue/queue.h"

struct redisReply;
struct cli;

struct subcommand {
    const char *name;
    const char *summary; /* one line for leat --help */
    const char *help;    /* all of leat NAME --help */
    int (*run)(struct cli *cli, int argc, char **argv);
};

struct cli {
    const struct subcommand *subcommand;
    struct config_source source; /* which queue, and where its Redis is */
    struct config *config;       /* NULL before cli_load */
    struct queue queue;
    struct client *client; /* NULL before cli_connect */
    struct library_load library;
};

extern const struct subcommand enqueue_command, import_command, status_command, list_command,
    show_command, dead_command, cancel_command, pause_command, resume_command, drain_command,
    undrain_command, wait_command, run_command, logs_command, conf_command, doctor_command,
    init_command;

/* "leat: …" on stderr: what failed: why; what to do. Control characters in it are escaped. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- options ---- */

/* Long options without a letter: above all letters, below those of the commands. */
enum { CLI_OPTION_REDIS = 128, CLI_OPTION_PASSWORD_FILE };

/* Every command takes these too; they begin its table of long options. */
#define CLI_COMMON_OPTIONS                                                                         \
    {"config", required_argument, NULL, 'c'}, {"queue", required_argument, NULL, 'q'},             \
        {"redis", required_argument, NULL, CLI_OPTION_REDIS},                                      \
        {"password-file", required_argument, NULL, CLI_OPTION_PASSWORD_FILE},                      \
    {                                                                                              \
        "help", no_argument, NULL, 'h'                                                             \
    }
#define CLI_COMMON_LETTERS "c:q:h"

#define CLI_OPTION_END (-1)
#define CLI_OPTION_STOP (-2) /* help was printed, or the error: return *status */

/* The next option as getopt_long has it; the common ones are dealt with here. letters begins with
 * ':' or "+:" and holds CLI_COMMON_LETTERS. */
int cli_option(struct cli *cli, int argc, char **argv, const char *letters,
               const struct option *options, int *status);

/* Says what is wrong with the command line and where help is. Returns EX_USAGE. */
int cli_usage(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Values of options; on failure the error has been printed and the result is EX_USAGE, else 0. */
int cli_duration(const struct cli *cli, const char *option, const char *text, int64_t *ms);
int cli_integer(const struct cli *cli, const char *option, const char *text, int64_t low,
                int64_t *value);

/* " Did you mean X?" into text if a choice is near the word, else "". */
void cli_suggest(const char *word, const char *const *choices, size_t count, char *text,
                 size_t size);

/* ---- configuration and connection ---- */

/* Finds and loads the configuration. Returns 0 or an exit status; the error has been printed. */
int cli_load(struct cli *cli);

/* The same, and connects. */
int cli_connect(struct cli *cli);

/* Connects again, once configured, without a word. Returns 0, or -1 with class and message. */
int cli_try_connect(struct cli *cli, enum redis_error *error, char *why, size_t why_size);

/* Drops the connection; the next cli_connect opens one. */
void cli_disconnect(struct cli *cli);

void cli_free(struct cli *cli);

/* The exit status for a failed call; why is its message. */
int cli_status_of(enum redis_error error, const char *why);

/* Prints why a call failed, with advice, and returns the exit status. what: "cannot …". */
int cli_call_failed(const char *what, enum redis_error error, const char *why);

/* The protocol that a reply begins with and its length are as wanted; else prints and returns an
 * exit status. */
int cli_check_reply(const struct redisReply *reply, size_t elements);

/* Sends, waits, and checks. Returns the reply for freeReplyObject, or NULL: the error has been
 * printed and *status set. Frees nothing of command. */
struct redisReply *cli_call(struct cli *cli, struct command *command, const char *what,
                            size_t elements, int *status);

/* Flushes stdout. Returns 0, or EX_IOERR after saying so (silently where the reader has gone). */
int cli_flush(void);

/* "out of memory"; returns EX_OSERR. */
int cli_no_memory(void);

#endif
