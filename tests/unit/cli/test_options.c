/* The options of a command: what a table makes of the command line. */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/lib/cli.h"

struct given {
    bool json;
    const char *lane, *file;
    int64_t age_ms, limit;
    char taken[64];
};

static int take_label(const struct cli *cli, const struct cli_option *option, const char *value)
{
    struct given *given = option->context;

    (void)cli;
    (void)snprintf(given->taken, sizeof given->taken, "%s %s=%s", option->name, option->field,
                   value ? value : "none");
    return value && strcmp(value, "bad") == 0 ? EX_DATAERR : EX_OK;
}

static const struct cli_option shared[] = {
    {"--label", .take = take_label, .field = "id"},
    {"--next", .value = CLI_NO_VALUE, .take = take_label, .field = "next"},
    {"--often", .value = CLI_MAY_HAVE_VALUE, .take = take_label, .field = "often"},
    {0},
};

/* Parses the words after the name of the command. */
static int parse(struct cli *cli, struct given *given, enum cli_operands operands,
                 const char *const *words)
{
    static const struct subcommand subcommand = {"probe", "", "", NULL};
    const struct cli_option table[] = {
        {"--json", 'j', .flag = &given->json},    {"--lane", 'l', .text = &given->lane},
        {"--age", .duration_ms = &given->age_ms}, {"--limit", .number = &given->limit, .least = 2},
        {"--queue", .text = &given->file},        {.more = shared, .context = given},
    };
    char *argv[16] = {(char *)"probe"};
    int argc = 1;

    *cli = (struct cli){.subcommand = &subcommand};
    *given = (struct given){0};
    for (; words[argc - 1]; argc++) {
        argv[argc] = (char *)words[argc - 1];
    }
    optind = 0;
    return cli_options(cli, argc, argv, operands, table);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Goal: every kind of option stores its value, with a long name and with a letter. */
static void stores_values(void **state)
{
    struct cli cli;
    struct given given;

    (void)state;
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS,
                           WORDS("--json", "x", "-l", "alice", "--age=2s", "--limit", "7")),
                     EX_OK);
    assert_true(given.json);
    assert_string_equal(given.lane, "alice");
    assert_int_equal(given.age_ms, 2000);
    assert_int_equal(given.limit, 7);
    assert_int_equal(optind, 7); /* the operand was moved behind the options */
}

/* Goal: a shared table gets the context of the entry that names it. */
static void takes_shared(void **state)
{
    struct cli cli;
    struct given given;

    (void)state;
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--label", "a")), EX_OK);
    assert_string_equal(given.taken, "--label id=a");
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--next")), EX_OK);
    assert_string_equal(given.taken, "--next next=none");
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--often")), EX_OK);
    assert_string_equal(given.taken, "--often often=none");
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--often=3")), EX_OK);
    assert_string_equal(given.taken, "--often often=3");
}

/* Goal: the common options are known, but one of the command with the same name replaces them. */
static void knows_common(void **state)
{
    struct cli cli;
    struct given given;

    (void)state;
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS,
                           WORDS("-c", "f.ini", "-q", "a", "--queue", "b", "--redis", "redis://h")),
                     EX_OK);
    assert_string_equal(cli.source.file, "f.ini");
    assert_string_equal(cli.source.queue, "a");
    assert_string_equal(cli.source.url, "redis://h");
    assert_string_equal(given.file, "b");

    /* an abbreviation of such an option is not ambiguous */
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--que", "c")), EX_OK);
    assert_string_equal(given.file, "c");
}

/* Goal: the first wrong option or value ends the parsing with an exit status. */
static void refuses(void **state)
{
    struct cli cli;
    struct given given;

    (void)state;
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--nothing")), EX_USAGE);
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--json=1")), EX_USAGE);
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--lane")), EX_USAGE);
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--age", "x", "--json")), EX_USAGE);
    assert_false(given.json);
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--limit", "1")), EX_USAGE);
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--label", "bad")), EX_DATAERR);
    assert_int_equal(parse(&cli, &given, CLI_OPERANDS, WORDS("--help", "--bad")), CLI_STOP);
}

/* Goal: the operands are those that the command takes. */
static void checks_operands(void **state)
{
    struct cli cli;
    struct given given;

    (void)state;
    assert_int_equal(parse(&cli, &given, CLI_NO_OPERANDS, WORDS("--json")), EX_OK);
    assert_int_equal(parse(&cli, &given, CLI_NO_OPERANDS, WORDS("x")), EX_USAGE);
    assert_int_equal(parse(&cli, &given, CLI_ONE_TASK, WORDS("x")), EX_OK);
    assert_int_equal(parse(&cli, &given, CLI_ONE_TASK, WORDS("--json")), EX_USAGE);
    assert_int_equal(parse(&cli, &given, CLI_ONE_TASK, WORDS("x", "y")), EX_USAGE);
    assert_int_equal(parse(&cli, &given, CLI_WORDS, WORDS("x", "--json", "--bad")), EX_OK);
    assert_int_equal(optind, 1);
    assert_false(given.json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_values),   cmocka_unit_test(takes_shared),
        cmocka_unit_test(knows_common),    cmocka_unit_test(refuses),
        cmocka_unit_test(checks_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
