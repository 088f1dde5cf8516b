/*
 * Parses the command line of leatd: which queue it serves, and where its Redis is.
 */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/log/log.h"
#include "daemon/upgrade/hand_over.h"
#include "daemon/upgrade/program.h"

static const char usage[] =
    "Usage: leatd [-c FILE | -q QUEUE] [--redis URL] [-t]\n"
    "Run the tasks of one queue.\n"
    "\n"
    "Options:\n"
    "  -c, --config FILE  use this configuration file, see leat.ini(5)\n"
    "  -q, --queue QUEUE  use " CONFIG_SOURCE_FOLDER "/QUEUE.ini; with --redis or $LEAT_REDIS, no\n"
    "                     file is read, and every key has its default\n"
    "  --redis URL        use this Redis server: redis://HOST[:PORT][/DB],\n"
    "                     rediss://HOST... for TLS, or unix:///PATH[?db=DB]\n"
    "  --password-file FILE\n"
    "                     read the password for --redis or $LEAT_REDIS from FILE\n"
    "  -t, --test         check the configuration, print its errors, and exit;\n"
    "                     root checks with the rights of the unit's user\n"
    "  -h, --help         print help\n"
    "  -V, --version      print the version\n"
    "\n"
    "Without --redis and -c, leatd uses the server in $LEAT_REDIS, a URL that may\n"
    "hold a password: redis://[USER]:PASSWORD@HOST.\n"
    "\n"
    "Signals:\n"
    "  TERM, INT  stop after a drain; a second one ends the drain at once\n"
    "  HUP        reload the configuration\n"
    "  USR2       upgrade in place to the installed leatd; see leat upgrade --help\n"
    "\n"
    "Exit codes:\n"
    "  0   clean shutdown\n"
    "  64  wrong usage\n"
    "  70  internal error\n"
    "  71  the system refused something that leatd needs\n"
    "  74  the output cannot be written\n"
    "  75  stopped before Redis had accepted all outcomes\n"
    "  77  Redis denied access\n"
    "  78  the configuration is wrong\n"
    "See leatd(8) for more.\n";

enum { OPTION_REDIS = 256, OPTION_PASSWORD_FILE, OPTION_TAKE_OVER };

static const char letters[] = ":c:q:thV"; /* for getopt_long */

int options_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = vprintf(format, arguments);
    va_end(arguments);
    if (written >= 0 && fflush(stdout) == 0) {
        return EX_OK;
    }
    (void)fprintf(stderr, "leatd: cannot write the output: %s\n", strerror(errno));
    return EX_IOERR;
}

/* Prints to stderr; if that fails, nothing else can be tried. The message may quote anything, so it
 * is escaped. */
__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
    char message[1024]; /* a longer one is cut */
    struct buffer line = BUFFER_INIT;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (escape_append(&line, message, strlen(message))) {
        buffer_clear(&line);
    }
    (void)fprintf(stderr, "leatd: %.*s; see leatd --help\n", (int)line.size,
                  line.size > 0 ? line.data : "");
    buffer_free(&line);
    return EX_USAGE;
}

/* Names the option that getopt_long refused, as it was typed. */
static int refuse_option(int error, const char *typed)
{
    int name = (int)strcspn(typed, "=");
    if (error == ':') {
        return refuse("option %s needs a value", typed);
    }
    if (optopt == 0) {
        return refuse("unknown option %.*s", name, typed);
    }
    return strchr(letters, optopt) ? refuse("option %.*s takes no value", name, typed)
                                   : refuse("unknown option -%c", optopt);
}

/* Returns -1 to go on, or an exit code. */
static int take_value(const char **member, const char *name)
{
    if (*member) {
        return refuse("%s is given twice; give it once", name);
    }
    *member = optarg;
    return -1;
}

/* Returns -1 to go on, or an exit code. typed: the option, if getopt_long refused it. */
static int take_option(int letter, const char *typed, struct options *options)
{
    switch (letter) {
    case 'c':
        return take_value(&options->source.file, "--config");
    case 'q':
        return take_value(&options->source.queue, "--queue");
    case OPTION_REDIS:
        return take_value(&options->source.url, "--redis");
    case OPTION_PASSWORD_FILE:
        return take_value(&options->source.password_file, "--password-file");
    case OPTION_TAKE_OVER:
        options->takes_over = true;
        return -1;
    case 't':
        options->test = true;
        return -1;
    case 'h':
        return options_say("%s", usage);
    case 'V':
        return options_say("leatd " LEAT_VERSION LEAT_COMMIT "\n");
    default:
        return refuse_option(letter, typed);
    }
}

/* Returns −1 if the options fit together, otherwise an exit code. */
static int check(const struct config_source *source)
{
    struct buffer why = BUFFER_INIT;
    int code = -1;
    if (!source->file && !source->queue) {
        return refuse(
            "no queue is named; name it with -q QUEUE, or its configuration with -c FILE");
    }
    if (config_source_check(source, &why)) {
        code = refuse("%.*s", (int)why.size, why.data ? why.data : "");
    }
    buffer_free(&why);
    return code;
}

static int out_of_memory(void)
{
    (void)fputs("leatd: out of memory\n", stderr);
    return EX_OSERR;
}

/* Returns -1 to go on, or an exit code. */
static int find_path(struct options *options)
{
    const struct config_source *source = &options->source;
    if (!source->file && config_source_url(source)) {
        return -1;
    }
    options->path = source->file ? strdup(source->file) : config_source_queue_path(source->queue);
    return options->path ? -1 : out_of_memory();
}

/* Finds the file that an upgrade will execute. A name without a slash was found along PATH. The
 * path in /proc is another one for a link to the file, which may lead to a newer file later. */
static int find_program(struct options *options, char *const *argv)
{
    char path[PATH_MAX];
    ssize_t size = 0;
    if (!argv[0] || !strchr(argv[0], '/')) {
        size = readlink("/proc/self/exe", path, sizeof path - 1);
    }
    path[size > 0 ? size : 0] = '\0';
    options->arguments = argv;
    options->program = strdup(size > 0 ? path : argv[0] ? argv[0] : "");
    return options->program ? -1 : out_of_memory();
}

/* The process that this one replaces was started with LEAT_REDIS, and has sent it. */
static int take_server(struct options *options)
{
    char *url = NULL;
    if (options->takes_over && hand_over_receive_server(HAND_OVER_FD, &url)) {
        return out_of_memory();
    }
    if (url) {
        config_source_set_variable(&options->source, url);
    }
    return -1;
}

int options_parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"config", required_argument, NULL, 'c'},
        {"queue", required_argument, NULL, 'q'},
        {"redis", required_argument, NULL, OPTION_REDIS},
        {"password-file", required_argument, NULL, OPTION_PASSWORD_FILE},
        {"test", no_argument, NULL, 't'},
        {&PROGRAM_TAKE_OVER[2], no_argument, NULL, OPTION_TAKE_OVER},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0}};
    int letter, code = -1;
    if (config_source_open(&options->source)) {
        return out_of_memory();
    }
    opterr = 0;
    while (code < 0 && (letter = getopt_long(argc, argv, letters, known, NULL)) != -1) {
        code = take_option(letter, argv[optind - 1], options);
    }
    if (code < 0 && optind < argc) {
        code =
            refuse("unexpected argument: %s; name the queue with -q, or its configuration with -c",
                   argv[optind]);
    }
    code = code < 0 ? take_server(options) : code;
    code = code < 0 ? check(&options->source) : code;
    code = code < 0 ? find_program(options, argv) : code;
    return code < 0 ? find_path(options) : code;
}

void options_free(struct options *options)
{
    config_source_close(&options->source);
    free(options->path);
    free(options->program);
    options->path = options->program = NULL;
}

int options_load(const struct options *options, struct config **config, struct buffer *errors)
{
    return config_source_load(&options->source, options->path, true, config, errors);
}

int options_refuse(const struct buffer *errors, const char *message_id)
{
    log_lines(LOG_ERR, message_id, errors);
    if (errors->size == 0) {
        log_text(LOG_ERR, "cannot read the configuration: out of memory");
    }
    return errors->failed ? EX_OSERR : EX_CONFIG;
}
