/*
 * Parts that all commands share: the table of commands, options, configuration, connection and
 * errors. A command that fails prints the reason to stderr and returns an exit status, from
 * sysexits.h or from its help. main flushes stdout and frees what is in struct cli.
 */
#ifndef LEAT_CLI_LIB_CLI_H
#define LEAT_CLI_LIB_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
    show_command, explain_command, dead_command, cancel_command, pause_command, resume_command,
    drain_command, undrain_command, wait_command, run_command, logs_command, conf_command,
    doctor_command, init_command, try_command, upgrade_command, move_command, now_command,
    edit_command, destroy_command, export_command, metrics_command, report_command, top_command,
    attach_command;

/* The last exit codes in the help of a command that calls Redis. */
#define CLI_EXITS                                                                                  \
    "  69  Redis cannot be reached\n"                                                              \
    "  74  the output cannot be written\n"                                                         \
    "  75  Redis is busy; try again later\n"                                                       \
    "  77  Redis denied access\n"                                                                  \
    "  78  the configuration is wrong\n"

/* Prints "leat: " and the message to stderr, with control characters escaped. The form of a message
 * is "what failed: why; what to do". */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- options ---- */

struct cli_option;

/* Applies an option in another way than by storing its value. value: NULL if it has none. Returns 0
 * to continue, CLI_STOP, or an exit status after printing the error. */
typedef int cli_take(const struct cli *cli, const struct cli_option *option, const char *value);

enum cli_value { CLI_VALUE, CLI_NO_VALUE, CLI_MAY_HAVE_VALUE };

/* An option of a command. The first pointer that is set says what becomes of its value. */
struct cli_option {
    const char *name;     /* such as "--limit"; NULL ends a table */
    char letter;          /* 0: none */
    bool repeats;         /* may be given several times, with one value each */
    enum cli_value value; /* CLI_NO_VALUE for all with a flag */
    bool *flag;           /* becomes true */
    const char **text;    /* becomes the value, which is not copied */
    int64_t *duration_ms; /* becomes the value in ms */
    int64_t *number;      /* becomes the value, a number of at least `least` */
    int64_t least;
    cli_take *take;                /* also called after text was set */
    const char *field;             /* of a task, for take */
    void *context;                 /* for take */
    const struct cli_option *more; /* of the end of a table: other options, for this context */
};

/* The operands, which follow the options. */
enum cli_operands {
    CLI_NO_OPERANDS,
    CLI_OPERANDS, /* may also stand between options */
    CLI_ONE_TASK, /* the id of a task */
    CLI_WORDS     /* begin with the first operand, and may look like options */
};

#define CLI_STOP (-1) /* help was printed; main makes it EX_OK */

/* Applies the options of the command line, those of the table and those that every command takes.
 * An option of the table replaces a common one. Operands begin at optind. Returns 0, CLI_STOP, or
 * an exit status after printing the error. */
int cli_options(struct cli *cli, int argc, char **argv, enum cli_operands operands,
                const struct cli_option *table);

/* Prints what is wrong with the command line and how to get help. Returns EX_USAGE. */
int cli_usage(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Parse the value of an option. Return 0, or EX_USAGE after printing the error. */
int cli_duration(const struct cli *cli, const char *option, const char *text, int64_t *ms);
int cli_integer(const struct cli *cli, const char *option, const char *text, int64_t low,
                int64_t high, int64_t *value);

/* Refuses an id that was read as a line and contains a NUL byte: what precedes it could name
 * another task. Returns 0, or EX_USAGE after printing the error. */
int cli_check_line(const struct cli *cli, const char *line, size_t size);

/* Writes " did you mean X?" into text if a choice is similar to the word, or else "". */
void cli_suggest(const char *word, const char *const *choices, size_t count, char *text,
                 size_t size);

/* ---- configuration and connection ---- */

/* Finds and loads the configuration. Returns 0, or an exit status after printing the error. */
int cli_load(struct cli *cli);

/* Prints the errors of a configuration, of which each line names its file and what to do. Returns
 * the exit status. */
int cli_bad_config(const struct buffer *errors);

/* Also connects to Redis. */
int cli_connect(struct cli *cli);

/* Connects with the loaded configuration and prints nothing. Returns 0, or -1 with the class and
 * the message of the error. */
int cli_try_connect(struct cli *cli, enum redis_error *error, char *why, size_t why_size);

/* Closes the connection. The next cli_connect opens a new one. */
void cli_disconnect(struct cli *cli);

void cli_free(struct cli *cli);

/* The exit status for a failed call. */
int cli_status_of(enum redis_error error);

/* Prints why a call failed and what to do. what: "cannot …". Returns the exit status. */
int cli_call_failed(const struct cli *cli, const char *what, enum redis_error error,
                    const char *why);

/* Checks the protocol version that a reply begins with, and its length. Returns 0, or an exit
 * status after printing the error. */
int cli_check_reply(const struct redisReply *reply, size_t elements);

/* Prints that a reply has an unknown form, as of another version. Returns EX_PROTOCOL. */
int cli_unexpected_reply(void);

/* Sends and frees the command, waits for its reply and checks it. Returns the reply for
 * freeReplyObject, or NULL after printing the error and setting *status. */
struct redisReply *cli_call(struct cli *cli, struct command *command, const char *what,
                            size_t elements, int *status);

/* Flushes stdout. Returns 0, or EX_IOERR after printing the error. If the reader of a pipe has
 * gone, it prints nothing. */
int cli_flush(void);

/* Prints "out of memory". Returns EX_OSERR. */
int cli_no_memory(void);

#endif
