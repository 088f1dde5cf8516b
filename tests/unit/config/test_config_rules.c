/* Rules of [retry]: parsing, precedence and errors. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/file/load.h"

#define QUEUE "[queue]\nname = q\n[retry]\n"
#define COUNT(list) (sizeof list / sizeof((list)[0]))

static struct config *parse(const char *lines)
{
    struct config *config = NULL;
    struct buffer errors = BUFFER_INIT;
    char text[1024];
    int length = snprintf(text, sizeof text, QUEUE "%s", lines);

    if (config_parse("f", text, (size_t)length, &config, &errors) != 0) {
        fail_msg("%.*s", (int)errors.size, errors.data);
    }
    buffer_free(&errors);
    return config;
}

static void assert_rule(struct config_rule rule, enum config_rule_kind kind, int most)
{
    assert_int_equal(rule.kind, kind);
    assert_int_equal(rule.most, most);
}

/* The rules of all exit codes as letters: . none, r retry, d dead, s success. */
static void assert_exits(const char *lines, const char *expected)
{
    struct config *config = parse(lines);
    char found[CONFIG_CODES + 1] = "";

    for (int code = 0; code < CONFIG_CODES; code++) {
        found[code] = ".rds"[config->retry.exits.of[code].kind];
    }
    for (const char *part = expected; *part != '\0';
         part += strcspn(part, " "), part += *part == ' ') {
        int code, used;
        char letter;

        assert_int_equal(sscanf(part, "%d%c%n", &code, &letter, &used), 2);
        if (found[code] != letter) {
            fail_msg("%s: the rule of %d is %c", lines, code, found[code]);
        }
        found[code] = '.';
    }
    /* and no others */
    assert_int_equal(strspn(found, "."), CONFIG_CODES);
    config_free(config);
}

/* Goal: each form of a rule is read for each key. */
static void rules_are_read(void **state)
{
    (void)state;
    struct config *config =
        parse("exit.75 = retry 20\nexit.1 = 3\nexit.2 = success\nexit = dead\nsignal.TERM = 2\n"
              "signal.SIGHUP = dead\nsignal.40=retry\nsignal = retry \t 7 ; a comment\n"
              "killed = 1\noom = dead\ntimeout = 100000\noutput-limit = dead\n"
              "cannot-execute = retry 2\ncheck = dead\n");
    const struct config_retry *retry = &config->retry;

    assert_rule(retry->exits.of[75], CONFIG_RULE_RETRY, 20);
    assert_rule(retry->exits.of[1], CONFIG_RULE_RETRY, 3);
    assert_rule(retry->exits.of[2], CONFIG_RULE_SUCCESS, 0);
    assert_rule(retry->exit, CONFIG_RULE_DEAD, 0);
    assert_rule(retry->signals.of[SIGTERM], CONFIG_RULE_RETRY, 2);
    assert_rule(retry->signals.of[SIGHUP], CONFIG_RULE_DEAD, 0);
    assert_rule(retry->signals.of[40], CONFIG_RULE_RETRY, 0);
    assert_rule(retry->signals.of[SIGINT], CONFIG_RULE_NONE, 0);
    assert_rule(retry->signal, CONFIG_RULE_RETRY, 7);
    assert_rule(retry->killed, CONFIG_RULE_RETRY, 1);
    assert_rule(retry->oom, CONFIG_RULE_DEAD, 0);
    assert_rule(retry->timeout, CONFIG_RULE_RETRY, 100000);
    assert_rule(retry->output_limit, CONFIG_RULE_DEAD, 0);
    assert_rule(retry->cannot_execute, CONFIG_RULE_RETRY, 2);
    assert_rule(retry->check, CONFIG_RULE_DEAD, 0);
    config_free(config);
}

/* Goal: the narrowest rule for a code applies, in any order of lines: a line for the code, a range
 * or a list, the preset. */
static void the_narrowest_holds(void **state)
{
    (void)state;
    assert_exits("", "");
    assert_exits("exit = dead\n", "");
    assert_exits("exit.255 = dead\nexit.1-1 = retry\n", "1r 255d");
    assert_exits("exit.64-66 = dead\nexit.65 = retry\n", "64d 65r 66d");
    assert_exits("exit.65 = retry\nexit.64-66 = dead\n", "64d 65r 66d");
    assert_exits("permanent = 64, 66\nsuccess = 3\nexit.66 = retry\n", "3s 64d 66r");
    assert_exits("exit.3 = 5\nsuccess = 0-3\nexit.4-5 = dead\n", "1s 2s 3r 4d 5d");
}

/* Goal: presets have the codes of their conventions; lines, ranges and lists of the file take
 * precedence. */
static void presets_are_filled_in(void **state)
{
    (void)state;
    assert_exits("preset = none\n", "");
    assert_exits("preset = qmail\n", "64d 65d 70d 76d 77d 78d 99s 100d 111r 112d");
    assert_exits("preset = sysexits\n",
                 "64d 65d 66d 67d 68d 69d 70d 71r 72d 73d 74r 75r 76d 77d 78d");
    assert_exits("exit.64-78 = retry\npreset = qmail\nexit.99 = dead\npermanent = 111\n"
                 "success = 112\n",
                 "64r 65r 66r 67r 68r 69r 70r 71r 72r 73r 74r 75r 76r 77r 78r 99d 100d 111d 112s");
    assert_exits("preset = qmail\nexit = dead\n", "64d 65d 70d 76d 77d 78d 99s 100d 111r 112d");
}

/* Goal: errors about rules say what is valid. */
static void wrong_rules_are_told(void **state)
{
    (void)state;
#define NUMBERS "or a number of attempts from 1 to 100000, such as \"retry 20\""
#define CODES                                                                                      \
    " is neither an exit code from 1 to 255 nor a range such as 64-78; 0 always means success\n"
    static const char *const wrong[][2] = {
        {"oom = ded",
         "oom: \"ded\" is not a rule; write dead, retry, " NUMBERS "; did you mean dead?\n"},
        {"oom = retry 0",
         "oom: \"retry 0\" is not a rule; write dead, retry, " NUMBERS "; did you mean retry?\n"},
        {"oom = 100001", "oom: \"100001\" is not a rule; write dead, retry, " NUMBERS "\n"},
        {"oom = -1", "oom: \"-1\" is not a rule; write dead, retry, " NUMBERS "\n"},
        {"oom = retry20",
         "oom: \"retry20\" is not a rule; write dead, retry, " NUMBERS "; did you mean retry?\n"},
        {"timeout = success",
         "timeout: \"success\" is not a rule; write dead, retry, " NUMBERS "\n"},
        {"exit = 10m", "exit: \"10m\" is not a rule; write dead, retry, success, " NUMBERS "\n"},
        {"exit.0 = dead", "exit.0: \"0\"" CODES},
        {"exit.0-5 = dead", "exit.0-5: \"0-5\"" CODES},
        {"exit.256 = dead", "exit.256: \"256\"" CODES},
        {"exit.9-3 = dead", "exit.9-3: \"9-3\"" CODES},
        {"exit.9- = dead", "exit.9-: \"9-\"" CODES},
        {"exit.-9 = dead", "exit.-9: \"-9\"" CODES},
        {"exit. = dead", "exit.: \"\"" CODES},
        {"exit.CODE = dead", "exit.CODE: \"CODE\"" CODES},
        {"signal.TREM = dead", "signal.TREM: \"TREM\" is not a signal; write a name such as TERM, "
                               "or a number from 1 to 64; did you mean TERM?\n"},
        {"signal.0 = dead",
         "signal.0: \"0\" is not a signal; write a name such as TERM, or a number from 1 to 64\n"},
        {"signal.SIGKILL = dead", "signal.SIGKILL: there is no rule for KILL; write killed = ..., "
                                  "or oom = ... for tasks that are OOM-killed\n"},
        {"oomm = dead", "oomm: unknown key in [retry]; did you mean oom?\n"},
        {"output_limit = dead",
         "output_limit: unknown key in [retry]; did you mean output-limit?\n"},
        {"signl.TERM = dead", "signl.TERM: unknown key in [retry]; did you mean signal.NAME?\n"},
        {"exti.9 = dead", "exti.9: unknown key in [retry]; did you mean exit.CODE?\n"},
        {"preset = qmial",
         "preset: \"qmial\" is not one of none, qmail and sysexits; did you mean qmail?\n"},
        {"crash = dead", "crash: there is no rule for this cause: [queue] max_crashes "
                         "says how many are allowed; remove it\n"},
        {"lease-lost = 3", "lease-lost: there is no rule for this cause: no attempt is "
                           "counted, and the task runs again; remove it\n"},
    };

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct config *config = NULL;
        struct buffer errors = BUFFER_INIT;
        char text[256], expected[512];
        int length = snprintf(text, sizeof text, QUEUE "%s\n", wrong[i][0]);

        assert_int_equal(config_parse("f", text, (size_t)length, &config, &errors), -1);
        assert_true(snprintf(expected, sizeof expected, "f:4: %s", wrong[i][1]) > 0);
        assert_int_equal(buffer_append(&errors, "", 1), 0);
        assert_string_equal(errors.data, expected);
        buffer_free(&errors);
    }
}

/* Goal: a repeated rule is an error, since one of the two would have no effect. */
static void no_rule_is_given_twice(void **state)
{
    (void)state;
    static const char text[] =
        QUEUE "exit.9 = dead\nexit.9 = 3\nexit.1-4 = dead\nexit.4-6 = dead\nexit.4 = 3\n"
              "signal.TERM = dead\nsignal.15 = dead\noom = 1\noom = 1\n";
    struct config *config = NULL;
    struct buffer errors = BUFFER_INIT;

    assert_int_equal(config_parse("f", text, sizeof text - 1, &config, &errors), -1);
    assert_int_equal(buffer_append(&errors, "", 1), 0);
    assert_string_equal(
        errors.data,
        "f:5: exit.9: this exit code is already set; remove one of the two lines\n"
        "f:7: exit.4-6: exit code 4 is also in another range; ranges must not overlap\n"
        "f:10: signal.15: this signal is already set; remove one of the two lines\n"
        "f:12: oom: already set on line 11; remove one of the two lines\n");
    buffer_free(&errors);
}

/* Goal: a reload applies all rules. */
static void a_reload_takes_them(void **state)
{
    (void)state;
    struct config *old = parse("exit.9 = dead\npreset = qmail\noom = dead\n");
    struct config *fresh = parse("exit.8 = 4\nsignal.TERM = dead\nsuccess = 3\n");
    struct buffer kept = BUFFER_INIT;
    struct config *merged = config_merge(old, fresh, 60000, &kept);

    assert_non_null(merged);
    assert_int_equal(kept.size, 0);
    assert_rule(merged->retry.exits.of[9], CONFIG_RULE_NONE, 0);
    assert_rule(merged->retry.exits.of[100], CONFIG_RULE_NONE, 0);
    assert_rule(merged->retry.exits.of[8], CONFIG_RULE_RETRY, 4);
    assert_rule(merged->retry.exits.of[3], CONFIG_RULE_SUCCESS, 0);
    assert_rule(merged->retry.signals.of[SIGTERM], CONFIG_RULE_DEAD, 0);
    assert_rule(merged->retry.oom, CONFIG_RULE_RETRY, 0);
    config_free(merged);
    config_free(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read),         cmocka_unit_test(the_narrowest_holds),
        cmocka_unit_test(presets_are_filled_in),  cmocka_unit_test(wrong_rules_are_told),
        cmocka_unit_test(no_rule_is_given_twice), cmocka_unit_test(a_reload_takes_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
