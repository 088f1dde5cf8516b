/* Goal: listed commands get exactly the configured words; a value of a task never changes their
 * number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/task_made.h"
#include "config/types/arguments.h"
#include "exec/start/commands.h"

/* The argv of a task with these arguments, joined by '|', or why there is none. */
static void try_task(const char *arguments, const char *const *fields, const char *expected)
{
    struct buffer entry = BUFFER_INIT, joined = BUFFER_INIT;
    char reason[160];
    assert_int_equal(buffer_printf(&entry, "x=%s%c", arguments, 0), 0);
    const struct config_command config = {
        .program = (char *[]){(char *)"y=/bin/false", (char *)"x=tool", NULL},
        .arguments = (char *[]){entry.data, NULL}};
    struct commands *commands = commands_new(&config);
    struct task *task = make_task(fields, NULL, 0, false);
    assert_non_null(commands);
    assert_non_null(task);
    if (commands_fit(commands, task, reason, sizeof reason)) {
        char **words = commands_words(commands, task);
        assert_non_null(words);
        for (size_t i = 0; words[i]; i++) {
            assert_int_equal(buffer_printf(&joined, "%s%s", i > 0 ? "|" : "", words[i]), 0);
        }
        free(words);
    } else {
        assert_null(commands_words(commands, task));
        assert_int_equal(buffer_append_text(&joined, reason), 0);
    }
    assert_int_equal(buffer_append(&joined, "", 1), 0);
    if (strcmp(joined.data, expected) != 0) {
        fail_msg("%s: %s, expected %s", arguments, joined.data, expected);
    }
    task_free(task);
    commands_free(commands);
    buffer_free(&entry);
    buffer_free(&joined);
}

static void words_stay_words(void **state)
{
    (void)state;
    const char *const *fields = TEXTS("command", "x", "A", "a b", "E", "", "Q", "'\"{B} $(id)\n");
    try_task("", fields, "tool");
    try_task("  one\ttwo  ", fields, "tool|one|two");
    try_task("'' \"\" 'a b'\"c d\"e", fields, "tool|||a bc de");
    try_task("'\"' \"'\" \\ \\n $HOME *", fields, "tool|\"|'|\\|\\n|$HOME|*");
    try_task("{A} -x{A}y {A}{A} '{A}'", fields, "tool|a b|-xa by|a ba b|a b");
    try_task("{E} x{E} {Q}", fields, "tool||x|'\"{B} $(id)\n");
    try_task("{{A}} {{ }} '}}'", fields, "tool|{A}|{|}|}");
    try_task("{B=} {B=1} {A=1} '{B=x y}'", fields, "tool||1|a b|x y");
}

static void what_is_refused(void **state)
{
    (void)state;
    const char *const *fields = TEXTS("command", "x", "A", "-rf", "E", "");
    static const char option[] = "field A begins with -: it would be taken for an option";
    try_task("{B}", fields, "field B is missing: an argument of the command needs it");
    try_task("{A}", fields, option);
    try_task("{E}{A}", fields, option);
    try_task("-- {A}", fields, "tool|--|-rf");
    try_task("--file={A}", fields, "tool|--file=-rf");
    try_task("{A} --", fields, option);
    try_task("", TEXTS("command", "z\n"), "command z\\n is not listed");
    try_task("", TEXTS("command", "xx"), "command xx is not listed");
}

static void sizes(void **state)
{
    (void)state;
    char *longest = calloc(1, TASK_MAX_STRING + 1);
    assert_non_null(longest);
    memset(longest, 'a', TASK_MAX_STRING);
    const struct config_command config = {.program = (char *[]){(char *)"x=tool", NULL},
                                          .arguments = (char *[]){(char *)"x={payload}{E=}", NULL}};
    struct commands *commands = commands_new(&config);
    assert_non_null(commands);
    for (int i = 0; i < 3; i++) {
        /* the longest argument; one byte more by another field; a NUL byte */
        const char *const *fields =
            i == 1 ? TEXTS("command", "x", "E", "b") : TEXTS("command", "x");
        longest[5] = i == 2 ? '\0' : 'a';
        struct task *task = make_task(fields, longest, TASK_MAX_STRING, false);
        char reason[160] = "", *expected[] = {(char *)"", (char *)"131071", (char *)"NUL"};
        assert_non_null(task);
        assert_int_equal(commands_fit(commands, task, reason, sizeof reason), i == 0);
        assert_non_null(strstr(reason, expected[i]));
        task_free(task);
    }
    commands_free(commands);
    free(longest);
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    static const char *const bad[] = {"'",       "\"a' ",    "{",       "}",          "{}",
                                      "{A",      "{A B}",    "a}b",     "{A-B}",      "{A=x y}",
                                      "{A='x'}", "'{A=\"}'", "{A={B}}", "{leat.tid}", "{A=x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arguments arguments;
        struct buffer why = BUFFER_INIT;
        if (arguments_parse(bad[i], &arguments, &why) == 0 || why.size == 0 || why.failed) {
            fail_msg("taken: %s", bad[i]);
        }
        arguments_free(&arguments);
        buffer_free(&why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_stay_words),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(sizes),
        cmocka_unit_test(what_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
