/* Batches: the form of tasks on standard input, which tasks may share a process, and verdicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/task_made.h"
#include "queue/batch.h"

#define COUNT(array) (sizeof array / sizeof *(array))

static struct task *with_payload(const char *payload, size_t size)
{
    struct task *task = make_task(TEXTS("size", "big"), payload, size, true);
    assert_non_null(task);
    return task;
}

static void assert_form(enum config_format format, const char *payload, size_t size,
                        const char *expected, size_t expected_size)
{
    struct buffer input = BUFFER_INIT;
    struct task *task = with_payload(payload, size);
    assert_int_equal(batch_append(&input, format, task, NULL), 0);
    assert_int_equal(input.size, expected_size);
    assert_memory_equal(input.data, expected, expected_size);
    buffer_free(&input);
    task_free(task);
}

/* Goal: payloads end as the form says, and a last newline is not doubled. */
static void payloads_are_ended(void **state)
{
    (void)state;
    assert_form(CONFIG_FORMAT_LINES, "a b", 3, "a b\n", 4);
    assert_form(CONFIG_FORMAT_LINES, "a\n", 2, "a\n", 2);
    assert_form(CONFIG_FORMAT_LINES, "\n", 1, "\n", 1);
    assert_form(CONFIG_FORMAT_LINES, "", 0, "\n", 1);
    assert_form(CONFIG_FORMAT_LINES, "a\0b", 3, "a\0b\n", 4);
    assert_form(CONFIG_FORMAT_NUL, "a\n\n", 3, "a\n\n\0", 4);
    assert_form(CONFIG_FORMAT_NUL, "", 0, "\0", 1);
    /* no payload at all */
    assert_form(CONFIG_FORMAT_LINES, NULL, 0, "\n", 1);
    assert_form(CONFIG_FORMAT_NUL, NULL, 0, "\0", 1);
}

static void assert_json(struct task *task, const char *expected)
{
    struct buffer input = BUFFER_INIT;
    assert_non_null(task);
    assert_int_equal(batch_append(&input, CONFIG_FORMAT_JSON, task, NULL), 0);
    if (input.size != strlen(expected) || memcmp(input.data, expected, input.size) != 0) {
        fail_msg("\"%.*s\" is not \"%s\"", (int)input.size, input.data, expected);
    }
    buffer_free(&input);
    task_free(task);
}

/* Goal: JSON has all fields, on one line; values that are not UTF-8 are apart, in base64. */
static void json_loses_nothing(void **state)
{
    (void)state;
    assert_json(make_task(TEXTS("size", "big\n"), "a\0b", 3, true),
                "{\"tid\":\"1700000000123-0\",\"attempt\":2,\"fields\":{\"size\":\"big\\n\","
                "\"payload\":\"a\\u0000b\"}}\n");
    assert_json(make_task(TEXTS("id", "x", "base64", "y"), "\xff", 1, true),
                "{\"tid\":\"1700000000123-0\",\"attempt\":2,\"id\":\"x\",\"fields\":{\"id\":\"x\","
                "\"base64\":\"y\"},\"base64\":{\"payload\":\"/w==\"}}\n");
    assert_json(make_task(TEXTS("id", "\xc3"), NULL, 0, true),
                "{\"tid\":\"1700000000123-0\",\"attempt\":2,\"fields\":{},"
                "\"base64\":{\"id\":\"ww==\"}}\n");
}

/* Goal: payloads that look like several tasks are found. */
static void borders_are_kept(void **state)
{
    (void)state;
    static const struct {
        enum config_format format;
        const char *payload;
        size_t size;
        bool fits;
    } cases[] = {
        {CONFIG_FORMAT_LINES, "a", 1, true},         {CONFIG_FORMAT_LINES, "a\n", 2, true},
        {CONFIG_FORMAT_LINES, "a\nb", 3, false},     {CONFIG_FORMAT_LINES, "\n\n", 2, false},
        {CONFIG_FORMAT_LINES, "a\0b", 3, true},      {CONFIG_FORMAT_LINES, "", 0, true},
        {CONFIG_FORMAT_NUL, "a\nb\n", 4, true},      {CONFIG_FORMAT_NUL, "a\0", 2, false},
        {CONFIG_FORMAT_NUL, "\0a", 2, false},        {CONFIG_FORMAT_NUL, "", 0, true},
        {CONFIG_FORMAT_JSON, "a\n\0b\xff", 5, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char reason[160] = "";
        struct task *task = with_payload(cases[i].payload, cases[i].size);
        assert_int_equal(batch_fits(cases[i].format, task, reason, sizeof reason), cases[i].fits);
        assert_int_equal(*reason == '\0', cases[i].fits);
        task_free(task);
    }
}

/* Goal: only first attempts that another attempt may follow share a process. */
static void who_may_share(void **state)
{
    (void)state;
    struct config config = {.retry.max_attempts = 2};
    struct task task = {.attempt = 1, .timeout_ms = -1};
    assert_true(batch_may_share(&config, &task));
    task.attempt = 2;
    assert_false(batch_may_share(&config, &task));
    task = (struct task){.attempt = 1, .timeout_ms = -1, .crashes = 1};
    assert_false(batch_may_share(&config, &task));
    task = (struct task){.attempt = 1, .timeout_ms = 0};
    assert_false(batch_may_share(&config, &task));
    const struct bytes directory = {"/srv", 4};
    task = (struct task){.attempt = 1, .timeout_ms = -1, .directory = &directory};
    assert_false(batch_may_share(&config, &task));
    task = (struct task){.attempt = 1, .timeout_ms = -1, .max_attempts = 1};
    assert_false(batch_may_share(&config, &task));
    config.retry.max_attempts = 1;
    task.max_attempts = 3;
    assert_true(batch_may_share(&config, &task));
    task.max_attempts = 0;
    assert_false(batch_may_share(&config, &task));
}

static void assert_verdict(const char *line, size_t index, enum verdict verdict, const char *reason)
{
    struct batch_verdict found;
    assert_true(batch_read(line, strlen(line), 12, false, &found));
    assert_int_equal(found.index, index);
    assert_int_equal(found.verdict, verdict);
    assert_int_equal(found.reason.size, strlen(reason));
    assert_memory_equal(found.reason.data, reason, found.reason.size);
}

/* Goal: lines of the form are understood, and no others. */
static void lines_are_read(void **state)
{
    (void)state;
    static const char *const garbage[] = {"",      "1",
                                          "1 ",    "ok",
                                          "ok 1",  "0 ok",
                                          "13 ok", "-1 ok",
                                          "+1 ok", "1ok",
                                          "1 OK",  "1 okx",
                                          "1 ok,", " 1 ok",
                                          "1:ok",  "1,2 ok",
                                          "x ok",  "1.0 ok",
                                          "1 o",   "1\nok",
                                          "00 ok", "18446744073709551617 ok"};
    assert_verdict("1 ok", 1, VERDICT_SUCCESS, "");
    assert_verdict("12 retry", 12, VERDICT_RETRY, "");
    assert_verdict("007\tdead", 7, VERDICT_DEAD, "");
    assert_verdict("1  \t dead \t two  words ", 1, VERDICT_DEAD, "two  words ");
    for (size_t i = 0; i < COUNT(garbage); i++) {
        struct batch_verdict found;
        if (batch_read(garbage[i], strlen(garbage[i]), 12, false, &found)) {
            fail_msg("\"%s\" was taken for a verdict", garbage[i]);
        }
    }
    struct batch_verdict found;
    assert_true(batch_read("1 dead a\0b", 10, 1, false, &found));
    assert_int_equal(found.reason.size, 3);
}

/* Goal: only resident processes may report exit codes, and only those that exist. */
static void exit_codes_are_read(void **state)
{
    (void)state;
    static const char *const garbage[] = {"1 exit",    "1 exit ",  "1 exit x",  "1 exit 256",
                                          "1 exit -1", "0 exit 3", "1 exit 3x", "1 exit 1.0"};
    static const struct {
        const char *line;
        int code;
        enum verdict verdict;
    } known[] = {{"1 exit 0", 0, VERDICT_SUCCESS},
                 {"2 exit\t255", 255, VERDICT_RETRY},
                 {"12 exit 3 why", 3, VERDICT_RETRY},
                 {"3 retry 7", -1, VERDICT_RETRY}};
    struct batch_verdict found;
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_true(batch_read(known[i].line, strlen(known[i].line), 12, true, &found));
        assert_int_equal(found.code, known[i].code);
        assert_int_equal(found.verdict, known[i].verdict);
    }
    for (size_t i = 0; i < COUNT(garbage); i++) {
        assert_false(batch_read(garbage[i], strlen(garbage[i]), 12, true, &found));
    }
    assert_false(batch_read("1 exit 3", 8, 12, false, &found));
}

/* Goal: a resident process gets a task only if it can do what the task asks for, and if no other
 * task can cost it its last attempt. */
static void who_may_reside(void **state)
{
    (void)state;
    struct config config = {.retry.max_attempts = 2, .task.batch = 1, .task.resident = true};
    struct task task = {.attempt = 2, .timeout_ms = 5, .live = true, .max_output = 9};
    assert_true(batch_may_reside(&config, &task, true));
    assert_false(batch_may_reside(&config, &task, false));
    config.task.batch = 2;
    assert_false(batch_may_reside(&config, &task, true));
    task = (struct task){.attempt = 2, .timeout_ms = -1};
    assert_false(batch_may_reside(&config, &task, true));
    task.attempt = 1;
    assert_true(batch_may_reside(&config, &task, false));
    task.crashes = 1;
    assert_false(batch_may_reside(&config, &task, true));
    task = (struct task){.attempt = 1, .timeout_ms = -1, .bounds = {1}};
    assert_false(batch_may_reside(&config, &task, true));
    static const struct bytes directory = {"/", 1};
    task = (struct task){.attempt = 1, .timeout_ms = -1, .directory = &directory};
    assert_false(batch_may_reside(&config, &task, true));
    static char check[] = "true";
    config.task.check = check;
    config.task.check_after = CONFIG_CHECK_AFTER_TIMEOUT;
    task = (struct task){.attempt = 1, .timeout_ms = -1, .ends = CONFIG_CHECK_AFTER_TIMEOUT};
    assert_false(batch_may_reside(&config, &task, true));
    task.ends = CONFIG_CHECK_AFTER_LOST;
    assert_true(batch_may_reside(&config, &task, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_are_ended), cmocka_unit_test(json_loses_nothing),
        cmocka_unit_test(borders_are_kept),   cmocka_unit_test(who_may_share),
        cmocka_unit_test(lines_are_read),     cmocka_unit_test(exit_codes_are_read),
        cmocka_unit_test(who_may_reside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
