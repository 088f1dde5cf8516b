/*
 * Parts that all commands share: the table of commands, options, configuration, connection and
 * errors. A command that fails prints the reason to stderr and returns an exit status, from
 * sysexits.h or from its help. main flushes stdout and frees what is in struct cli.
 */
#ifndef LEAT_CLI_LIB_CLI_H
#define LEAT_CLI_LIB_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <sysexits.h>

#include "config/config.h"
#include "config/file/source.h"
#include "queue/keys.h"
#include "queue/library_load.h"

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

/* Prints "leat: " and the message to stderr, with control characters escaped. The form of a message
 * is "what failed: why; what to do". */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- options ---- */

/* Values of common options without a letter. Those of commands begin at 256. */
enum { CLI_OPTION_REDIS = 128, CLI_OPTION_PASSWORD_FILE };

/* Options that every command takes. The table of its long options begins with them. */
#define CLI_COMMON_OPTIONS                                                                         \
    {"config", required_argument, NULL, 'c'}, {"queue", required_argument, NULL, 'q'},             \
        {"redis", required_argument, NULL, CLI_OPTION_REDIS},                                      \
        {"password-file", required_argument, NULL, CLI_OPTION_PASSWORD_FILE},                      \
    {                                                                                              \
        "help", no_argument, NULL, 'h'                                                             \
    }
#define CLI_COMMON_LETTERS "c:q:h"

#define CLI_OPTION_END (-1)
#define CLI_OPTION_STOP (-2) /* help or an error was printed: return *status */

/* Returns the next option, as getopt_long does, and handles the common ones itself. letters begins
 * with ':' or "+:" and contains CLI_COMMON_LETTERS. */
int cli_option(struct cli *cli, int argc, char **argv, const char *letters,
               const struct option *options, int *status);

/* Prints what is wrong with the command line and how to get help. Returns EX_USAGE. */
int cli_usage(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Parse the value of an option. Return 0, or EX_USAGE after printing the error. */
int cli_duration(const struct cli *cli, const char *option, const char *text, int64_t *ms);
int cli_integer(const struct cli *cli, const char *option, const char *text, int64_t low,
                int64_t *value);

/* Writes " did you mean X?" into text if a choice is similar to the word, or else "". */
void cli_suggest(const char *word, const char *const *choices, size_t count, char *text,
                 size_t size);

/* ---- configuration and connection ---- */

/* Finds and loads the configuration. Returns 0, or an exit status after printing the error. */
int cli_load(struct cli *cli);

/* Also connects to Redis. */
int cli_connect(struct cli *cli);

/* Connects with the loaded configuration and prints nothing. Returns 0, or -1 with the class and
 * the message of the error. */
int cli_try_connect(struct cli *cli, enum redis_error *error, char *why, size_t why_size);

/* Closes the connection. The next cli_connect opens a new one. */
void cli_disconnect(struct cli *cli);

void cli_free(struct cli *cli);

/* The exit status for a failed call with this message. */
int cli_status_of(enum redis_error error, const char *why);

/* Prints why a call failed and what to do. what: "cannot …". Returns the exit status. */
int cli_call_failed(const char *what, enum redis_error error, const char *why);

/* Checks the protocol version that a reply begins with, and its length. Returns 0, or an exit
 * status after printing the error. */
int cli_check_reply(const struct redisReply *reply, size_t elements);

/* Prints that a reply has an unknown form, as of another version. Returns EX_PROTOCOL. */
int cli_unexpected_reply(void);

/* Sends the command, waits for its reply and checks it. Returns the reply for freeReplyObject, or
 * NULL after printing the error and setting *status. Does not free the command. */
struct redisReply *cli_call(struct cli *cli, struct command *command, const char *what,
                            size_t elements, int *status);

/* Flushes stdout. Returns 0, or EX_IOERR after printing the error. If the reader of a pipe has
 * gone, it prints nothing. */
int cli_flush(void);

/* Prints "out of memory". Returns EX_OSERR. */
int cli_no_memory(void);

#endif
