/*
 * The command line: options, their values, and usage errors.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/lib/cli.h"
#include "config/suggest.h"

/* Returns NULL if no choice is similar. */
static const char *nearest(const char *word, const char *const *choices, size_t count)
{
    const char *best = NULL;
    size_t least = SIZE_MAX, badness;

    for (size_t i = 0; i < count; i++) {
        badness = suggest_badness(word, choices[i]);
        if (badness < least) {
            least = badness;
            best = choices[i];
        }
    }
    return best;
}

void cli_suggest(const char *word, const char *const *choices, size_t count, char *text,
                 size_t size)
{
    const char *best = nearest(word, choices, count);

    text[0] = '\0';
    /* a long suggestion is cut: it is only a hint */
    if (best) {
        (void)snprintf(text, size, " did you mean %s?", best);
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

/* Prints what is wrong with the option that getopt_long refused, as it was typed. */
static int bad_option(const struct cli *cli, char **argv, int letter, const struct option *options)
{
    const char *typed = optind > 0 ? argv[optind - 1] : "", *names[64], *meant;
    size_t count = 0;
    char word[64];

    if (letter == ':') {
        return cli_usage(cli, "option %s needs a value", typed);
    }
    while (count < sizeof names / sizeof *names && options[count].name) {
        if (optopt != 0 && options[count].val == optopt) {
            return cli_usage(cli, "option --%s takes no value", options[count].name);
        }
        names[count] = options[count].name;
        count++;
    }
    if (optopt != 0) {
        return cli_usage(cli, "unknown option -%c", optopt);
    }

    /* only the name, without a value after an equals sign */
    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
    meant = nearest(word, names, count);
    if (meant) {
        return cli_usage(cli, "unknown option --%s; did you mean --%s?", word, meant);
    }
    return cli_usage(cli, "unknown option --%s", word);
}

int cli_option(struct cli *cli, int argc, char **argv, const char *letters,
               const struct option *options, int *status)
{
    int letter;

    opterr = 0;
    while ((letter = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        switch (letter) {
        case 'c':
            cli->source.file = optarg;
            break;
        case 'q':
            cli->source.queue = optarg;
            break;
        case CLI_OPTION_REDIS:
            cli->source.url = optarg;
            break;
        case CLI_OPTION_PASSWORD_FILE:
            cli->source.password_file = optarg;
            break;
        case 'h':
            if (!cli->subcommand) {
                return letter;
            }
            /* cli_flush reports failures */
            (void)fputs(cli->subcommand->help, stdout);
            *status = EX_OK;
            return CLI_OPTION_STOP;
        case '?':
        case ':':
            *status = bad_option(cli, argv, letter, options);
            return CLI_OPTION_STOP;
        default:
            return letter;
        }
    }
    return CLI_OPTION_END;
}

int cli_duration(const struct cli *cli, const char *option, const char *text, int64_t *ms)
{
    if (units_parse_duration(text, ms) == 0) {
        return EX_OK;
    }
    return cli_usage(cli, "%s: invalid duration '%s'; use one such as 30s, 5m or 1h30m", option,
                     text);
}

int cli_integer(const struct cli *cli, const char *option, const char *text, int64_t low,
                int64_t *value)
{
    if (units_parse_integer(text, low, INT64_C(1000000000000), value) == 0) {
        return EX_OK;
    }
    return cli_usage(cli, "%s: invalid number '%s'; use a whole number of at least %lld", option,
                     text, (long long)low);
}
