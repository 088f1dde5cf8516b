/*
 * The command line of leat-board.
 */
#include "board/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/escape.h"
#include "config/file/source.h"

#define DEFAULT_LISTEN "127.0.0.1:9464"
#define DEFAULT_STATE "/var/lib/leat-board"

static const char usage[] =
    "Usage: leat-board [OPTION]...\n"
    "Serve a page that shows queues: tasks, workers, lanes and dead letters. The board\n"
    "only reads.\n"
    "\n"
    "Options:\n"
    "  -q, --queue QUEUE     show this queue of " CONFIG_SOURCE_FOLDER "; may be repeated\n"
    "                        (default: all queues that have a file there)\n"
    "  --listen ADDRESS:PORT listen there (default: " DEFAULT_LISTEN "), or at\n"
    "           unix:PATH    a unix socket\n"
    "  --token-file FILE     the file of the token, which is made if it is missing\n"
    "                        (default: " DEFAULT_STATE "/token)\n"
    "  --no-token            let everybody read who can connect\n"
    "  --url                 print the address to open in a browser, and exit\n"
    "  -h, --help            print help\n"
    "  -V, --version         print the version\n"
    "\n"
    "Exit codes:\n"
    "  0   clean shutdown\n"
    "  64  wrong usage\n"
    "  71  the system refused something that leat-board needs\n"
    "  74  the output could not be written\n"
    "  78  there is no queue to show, or one given by -q has no file\n"
    "See leat-board(8) for more.\n";

enum { OPTION_LISTEN = 256, OPTION_TOKEN_FILE, OPTION_NO_TOKEN, OPTION_URL };

static const char letters[] = ":q:hV"; /* for getopt_long */

static int say(const char *text)
{
    if (fputs(text, stdout) >= 0 && fflush(stdout) == 0) {
        return EX_OK;
    }
    (void)fprintf(stderr, "leat-board: cannot write the output: %s\n", strerror(errno));
    return EX_IOERR;
}

/* The message may quote anything, so it is escaped. */
__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
    char message[512]; /* a longer one is cut */
    struct buffer line = BUFFER_INIT;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (escape_append(&line, message, strlen(message)) != 0) {
        buffer_clear(&line);
    }
    (void)fprintf(stderr, "leat-board: %.*s; see leat-board --help\n", (int)line.size,
                  line.size > 0 ? line.data : "");
    buffer_free(&line);
    return EX_USAGE;
}

static int take_queue(struct options *options)
{
    if (options->queue_count == OPTIONS_QUEUES) {
        return refuse("too many queues: give at most %d", OPTIONS_QUEUES);
    }
    /* it becomes part of a path */
    if (!*optarg || strchr(optarg, '/')) {
        return refuse("invalid queue '%s'", optarg);
    }
    options->queues[options->queue_count++] = optarg;
    return -1;
}

static int take_token_file(struct options *options, const char *folder, const char *name)
{
    int size = snprintf(options->token_file, sizeof options->token_file, "%s%s", folder, name);

    return size < (int)sizeof options->token_file ? -1 : refuse("the token's path is too long");
}

/* Returns -1 to go on, or an exit code. typed: the option, if getopt_long refused it. */
static int take_option(int letter, const char *typed, struct options *options)
{
    switch (letter) {
    case 'q':
        return take_queue(options);
    case OPTION_LISTEN:
        return listener_parse(optarg, &options->listen) == 0
                   ? -1
                   : refuse(
                         "--listen: invalid address '%s'; use ADDRESS:PORT such as " DEFAULT_LISTEN
                         ", or unix:PATH",
                         optarg);
    case OPTION_TOKEN_FILE:
        return take_token_file(options, optarg, "");
    case OPTION_NO_TOKEN:
        options->no_token = true;
        return -1;
    case OPTION_URL:
        options->url = true;
        return -1;
    case 'h':
        return say(usage);
    case 'V':
        return say("leat-board " LEAT_VERSION LEAT_COMMIT "\n");
    case ':':
        return refuse("option %s needs a value", typed);
    default:
        return refuse("unknown option or unexpected value: %s", typed);
    }
}

static int set_defaults(struct options *options)
{
    const char *folder = getenv("STATE_DIRECTORY"); /* systemd sets it */

    *options = (struct options){0};
    if (listener_parse(DEFAULT_LISTEN, &options->listen) != 0) {
        return EX_SOFTWARE;
    }
    return take_token_file(options, folder && *folder ? folder : DEFAULT_STATE, "/token");
}

int options_parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"queue", required_argument, NULL, 'q'},
        {"listen", required_argument, NULL, OPTION_LISTEN},
        {"token-file", required_argument, NULL, OPTION_TOKEN_FILE},
        {"no-token", no_argument, NULL, OPTION_NO_TOKEN},
        {"url", no_argument, NULL, OPTION_URL},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
    };
    int code = set_defaults(options), letter;

    opterr = 0;
    while (code < 0) {
        int at = optind;
        letter = getopt_long(argc, argv, letters, known, NULL);
        if (letter < 0) {
            break;
        }
        code = take_option(letter, argv[at], options);
    }
    if (code < 0 && optind < argc) {
        code = refuse("unexpected operand '%s'", argv[optind]);
    }
    if (code < 0 && options->url && *options->listen.path) {
        code = refuse("--url: a unix socket has no address for a browser");
    }
    return code;
}
