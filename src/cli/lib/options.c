/*
 * The command line: options, their values, and usage errors.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/lib/cli.h"
#include "config/suggest.h"

void cli_suggest(const char *word, const char *const *choices, size_t count, char *text,
                 size_t size)
{
    struct suggestion best = SUGGESTION_NONE;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        suggest_offer(&best, word, choices[i]);
    }
    /* a long suggestion is cut: it is only a hint */
    if (best.word) {
        (void)snprintf(text, size, " did you mean %s?", best.word);
    }
}

static int print_usage(const struct cli *cli, const char *message)
{
    const char *name = cli->subcommand ? cli->subcommand->name : NULL;
    size_t size = strlen(message);
    bool asks = size > 0 && message[size - 1] == '?';

    cli_error("%s%s%s%s leat %s%s--help", name ? name : "", name ? ": " : "", message,
              asks ? " See" : "; see", name ? name : "", name ? " " : "");
    return EX_USAGE;
}

int cli_usage(const struct cli *cli, const char *format, ...)
{
    char message[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return print_usage(cli, message);
}

/* ---- parsing */

#define MOST 64 /* options of a command */
#define MOST_NUMBER INT64_C(1000000000000)
#define FIRST_VALUE 256 /* getopt_long returns FIRST_VALUE + the index of the option */

/* All options of a command, and the same for getopt_long. */
struct known {
    struct cli_option list[MOST];
    bool given[MOST];
    struct option options[MOST + 1];
    char letters[2 + 3 * MOST + 1];
    size_t count;
};

static void add_letter(struct known *known, char letter, int has_value)
{
    size_t used = strlen(known->letters);

    if (letter != '\0' && !strchr(known->letters, letter)) {
        (void)snprintf(known->letters + used, sizeof known->letters - used, "%c%s", letter,
                       has_value == no_argument ? "" : ":");
    }
}

/* Returns where the name stands first, or the place that is free. */
static size_t place_of(const struct known *known, const char *name)
{
    size_t i = 0;
    while (i < known->count && strcmp(known->list[i].name, name) != 0) {
        i++;
    }
    return i;
}

/* Of equal names the first counts. Both have its value: otherwise getopt_long would call an
 * abbreviation ambiguous. */
static void add_options(struct known *known, const struct cli_option *table, void *context)
{
    for (; table->name && known->count < MOST; table++) {
        int has = table->flag || table->value == CLI_NO_VALUE ? no_argument
                  : table->value == CLI_MAY_HAVE_VALUE        ? optional_argument
                                                              : required_argument;
        known->options[known->count] = (struct option){
            table->name + 2, has, NULL, FIRST_VALUE + (int)place_of(known, table->name)};
        known->list[known->count] = *table;
        if (context) {
            known->list[known->count].context = context;
        }
        add_letter(known, table->letter, has);
        known->count++;
    }
    if (!table->name && table->more) {
        add_options(known, table->more, table->context);
    }
}

/* Returns the option for what getopt_long has returned, or NULL after an error. */
static const struct cli_option *find(const struct known *known, int value)
{
    for (size_t i = 0; i < known->count; i++) {
        if (value == known->options[i].val || value == known->list[i].letter) {
            return &known->list[i];
        }
    }
    return NULL;
}

/* Prints what is wrong with the option that getopt_long refused, as it was typed. */
static int bad_option(const struct cli *cli, char **argv, int error, const struct known *known)
{
    const char *typed = argv[optind - 1];
    struct suggestion best = SUGGESTION_NONE;
    const struct cli_option *given = optopt != 0 ? find(known, optopt) : NULL;
    char word[64];

    if (error == ':') {
        return cli_usage(cli, "option %s needs a value", typed);
    }
    if (given) {
        return cli_usage(cli, "option %s takes no value", given->name);
    }
    if (optopt != 0) {
        return cli_usage(cli, "unknown option -%c%s", optopt,
                         optopt >= '0' && optopt <= '9'
                             ? "; write -- before a value that begins with a hyphen"
                             : "");
    }

    /* only the name, without a value after an equals sign */
    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
    for (size_t i = 0; i < known->count; i++) {
        suggest_offer(&best, word, known->list[i].name + 2);
    }
    if (best.word) {
        return cli_usage(cli, "unknown option --%s; did you mean --%s?", word, best.word);
    }
    return cli_usage(cli, "unknown option --%s", word);
}

/* Refuses a second value: the first would be lost. */
static int note_given(const struct cli *cli, struct known *known, const struct cli_option *option)
{
    size_t index = (size_t)(option - known->list);

    if (known->given[index] && known->options[index].has_arg != no_argument && !option->repeats) {
        return cli_usage(cli, "%s is given twice; give it once", option->name);
    }
    known->given[index] = true;
    return EX_OK;
}

static int apply(const struct cli *cli, const struct cli_option *option)
{
    int status = EX_OK;

    if (option->flag) {
        *option->flag = true;
    } else if (option->text) {
        *option->text = optarg;
    } else if (option->duration_ms) {
        status = cli_duration(cli, option->name, optarg, option->duration_ms);
    } else if (option->number) {
        status = cli_integer(cli, option->name, optarg, option->least, MOST_NUMBER, option->number);
    }
    return status == EX_OK && option->take ? option->take(cli, option, optarg) : status;
}

/* Checks how many operands there are. */
static int check_operands(const struct cli *cli, int argc, char **argv, enum cli_operands operands)
{
    if (operands == CLI_NO_OPERANDS && optind < argc) {
        return cli_usage(cli, "unexpected argument: %s", argv[optind]);
    }
    if (operands == CLI_ONE_TASK && optind + 1 != argc) {
        return cli_usage(cli, "%s",
                         argc == optind ? "missing operand: give a task id"
                                        : "give only one task id");
    }
    return EX_OK;
}

static int print_help(const struct cli *cli, const struct cli_option *option, const char *value)
{
    (void)option;
    (void)value;
    /* cli_flush reports failures */
    (void)fputs(cli->subcommand->help, stdout);
    return CLI_STOP;
}

int cli_options(struct cli *cli, int argc, char **argv, enum cli_operands operands,
                const struct cli_option *table)
{
    const struct cli_option common[] = {
        {"--config", 'c', .text = &cli->source.file},
        {"--queue", 'q', .text = &cli->source.queue},
        {"--redis", .text = &cli->source.url},
        {"--password-file", .text = &cli->source.password_file},
        {"--help", 'h', .value = CLI_NO_VALUE, .take = print_help},
        {0},
    };
    struct known known = {0};
    int letter, status = EX_OK;

    (void)snprintf(known.letters, sizeof known.letters, "%s", operands == CLI_WORDS ? "+:" : ":");
    add_options(&known, table, NULL);
    add_options(&known, common, NULL);
    opterr = 0;
    while (status == EX_OK &&
           (letter = getopt_long(argc, argv, known.letters, known.options, NULL)) != -1) {
        const struct cli_option *option = find(&known, letter);
        if (!option) {
            return bad_option(cli, argv, letter, &known);
        }
        status = note_given(cli, &known, option);
        status = status == EX_OK ? apply(cli, option) : status;
    }
    return status == EX_OK ? check_operands(cli, argc, argv, operands) : status;
}

/* ---- values */

int cli_check_line(const struct cli *cli, const char *line, size_t size)
{
    return memchr(line, '\0', size)
               ? cli_usage(cli, "%s: this line of stdin holds a NUL byte; write one id per line",
                           line)
               : EX_OK;
}

int cli_duration(const struct cli *cli, const char *option, const char *text, int64_t *ms)
{
    int result = units_parse_duration(text, ms);

    if (result == 0) {
        return EX_OK;
    }
    return cli_usage(cli, "%s: invalid duration '%s'; use one %s", option, text,
                     result == UNITS_TOO_LARGE ? "of at most 36525d" : "such as 30s, 5m or 1h30m");
}

int cli_integer(const struct cli *cli, const char *option, const char *text, int64_t low,
                int64_t high, int64_t *value)
{
    if (units_parse_integer(text, low, high, value) == 0) {
        return EX_OK;
    }
    return cli_usage(cli, "%s: invalid number '%s'; use a whole number from %lld to %lld", option,
                     text, (long long)low, (long long)high);
}
