/* Goal: a task is decoded byte for byte, and a task that must not run is refused with a reason. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/resp.h"
#include "queue/task.h"

/* ---- building ---- */

static void begin_task(struct buffer *out, size_t fields)
{
    (void)buffer_append_text(out, "*7\r\n$4\r\ns5-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$13\r\n"
                                  "1700000000123\r\n");
    (void)buffer_printf(out, "*%zu\r\n", fields * 2);
}

static struct task *decode(struct buffer *out)
{
    redisReply *reply = resp_take(out);
    struct task *task = task_decode(reply);
    freeReplyObject(reply);
    return task;
}

struct pair {
    const char *name, *value;
};

static struct task *make_task(const struct pair *pairs, size_t count)
{
    struct buffer out = BUFFER_INIT;
    begin_task(&out, count);
    for (size_t i = 0; i < count; i++) {
        resp_text(&out, pairs[i].name);
        resp_text(&out, pairs[i].value);
    }
    struct task *task = decode(&out);
    assert_non_null(task);
    return task;
}

/* expected: text of the reason; NULL: accepted. */
static void assert_check(struct task *task, bool own_command, const char *expected)
{
    char reason[200] = "";
    bool fine = task_check(task, own_command, reason, sizeof reason);
    if (fine != !expected || (expected && !strstr(reason, expected))) {
        fail_msg("%s: \"%s\", expected \"%s\"", fine ? "accepted" : "refused", reason,
                 expected ? expected : "");
    }
    task_free(task);
}

#define CHECK(expected, ...)                                                                       \
    do {                                                                                           \
        const struct pair pairs[] = {__VA_ARGS__};                                                 \
        assert_check(make_task(pairs, sizeof pairs / sizeof pairs[0]), false, expected);           \
    } while (0)

/* A command and one more field of any bytes. */
static struct task *make_with(const char *name, size_t name_size, const char *value, size_t size)
{
    struct buffer out = BUFFER_INIT;
    begin_task(&out, 2);
    resp_text(&out, "command");
    resp_text(&out, "true");
    resp_bulk(&out, name, name_size);
    resp_bulk(&out, value, size);
    return decode(&out);
}

/* ---- decoding ---- */

static void decodes_every_part(void **state)
{
    (void)state;
    struct buffer out = BUFFER_INIT;
    begin_task(&out, 2);
    resp_text(&out, "payload");
    resp_bulk(&out, "a\0b\n\xff", 5);
    resp_bulk(&out, "", 0);
    resp_bulk(&out, "", 0);
    struct task *task = decode(&out);
    assert_non_null(task);
    assert_string_equal(task->token, "s5-1");
    assert_string_equal(task->tid, "4-0");
    assert_int_equal(task->attempt, 2);
    assert_int_equal(task->crashes, 1);
    assert_int_equal(task->fence, 3);
    assert_int_equal(task->enqueued_ms, 1700000000123);
    assert_int_equal(task->timeout_ms, -1);
    assert_int_equal(task->result_ttl_ms, -1);
    assert_int_equal(task->field_count, 2);
    assert_memory_equal(task->fields[0].value.data, "a\0b\n\xff", 6);
    assert_int_equal(task->fields[0].value.size, 5);
    assert_int_equal(task->fields[1].name.size, 0);
    assert_string_equal(task->fields[1].value.data, "");
    task_free(task);
    task_free(NULL);
}

#define FORM(text)                                                                                 \
    {                                                                                              \
        .data = (text), .size = sizeof text - 1                                                    \
    }

static void decodes_nothing_of_another_form(void **state)
{
    (void)state;
    static const struct bytes forms[] = {
        FORM("$-1\r\n"),
        FORM(":1\r\n"),
        FORM("*0\r\n"),
        FORM("*6\r\n$4\r\ns5-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n"),
        /* an odd number of values, a number among them, nil among them, a negative attempt */
        FORM("*7\r\n$4\r\ns5-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n*1\r\n$1\r\na\r\n"),
        FORM("*7\r\n$4\r\ns5-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n*2\r\n$1\r\na\r\n:"
             "1\r\n"),
        FORM("*7\r\n$4\r\ns5-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n*2\r\n$1\r\na\r\n$-"
             "1\r\n"),
        FORM("*7\r\n$4\r\ns5-1\r\n$3\r\n4-0\r\n:-2\r\n:1\r\n:3\r\n$1\r\n1\r\n*0\r\n"),
        /* a token cut by a NUL, an invalid time, fields that are no array */
        FORM("*7\r\n$4\r\ns\0-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n*0\r\n"),
        FORM("*7\r\n$4\r\ns5-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$3\r\n1e9\r\n*0\r\n"),
        /* what is no token */
        FORM("*7\r\n$0\r\n\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n*0\r\n"),
        FORM("*7\r\n$3\r\n5-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n*0\r\n"),
        FORM("*7\r\n$24\r\ns000000000000000000005-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n"
             "*0\r\n"),
        FORM("*7\r\n$24\r\ns5-000000000000000000001\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n"
             "*0\r\n"),
        FORM("*7\r\n$4\r\ns5-1\r\n$3\r\n4-0\r\n:2\r\n:1\r\n:3\r\n$1\r\n1\r\n$1\r\nx\r\n"),
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        redisReply *reply = resp_parse(forms[i].data, forms[i].size);
        errno = 0;
        assert_null(task_decode(reply));
        assert_int_equal(errno, EPROTO);
        freeReplyObject(reply);
    }
    errno = 0;
    assert_null(task_decode(NULL));
    assert_int_equal(errno, EPROTO);
}

/* ---- checking ---- */

static void finds_the_known_fields(void **state)
{
    (void)state;
    const struct pair pairs[] = {
        {"id", "a b"},         {"timeout", "1m30s"},  {"payload", ""},      {"SIZE_2", "x=y"},
        {"command", "true"},   {"max_attempts", "7"}, {"expires", "17e8"},  {"lane", "a b"},
        {"unique", "k"},       {"unique_for", "1m"},  {"unique_next", "1"}, {"result_ttl", "1h30m"},
        {"directory", "/srv"},
    };
    char reason[80] = "";
    struct task *task = make_task(pairs, sizeof pairs / sizeof pairs[0]);
    assert_true(task_check(task, false, reason, sizeof reason));
    assert_string_equal(task->command->data, "true");
    assert_string_equal(task->label->data, "a b");
    assert_int_equal(task->payload->size, 0);
    assert_int_equal(task->timeout_ms, 90000);
    assert_int_equal(task->max_attempts, 7);
    assert_string_equal(task->directory->data, "/srv");
    for (size_t i = 0; i < task->field_count; i++) {
        assert_int_equal(task_field_is_variable(&task->fields[i]), i == 3);
    }
    task_free(task);
}

static void wants_one_command(void **state)
{
    (void)state;
    CHECK(NULL, {"command", "true"});
    CHECK("no command", {"payload", "x"});
    CHECK("empty", {"command", ""});

    const struct pair with[] = {{"command", "true"}}, without[] = {{"payload", "x"}};
    assert_check(make_task(with, 1), true, "the config runs its own");
    assert_check(make_task(without, 1), true, NULL);
    assert_check(make_task(NULL, 0), true, NULL);
    assert_check(make_task(NULL, 0), false, "no command");
}

static void refuses_reserved_and_unsupported_names(void **state)
{
    (void)state;
    CHECK("field leat.tid is reserved", {"command", "true"}, {"leat.tid", "1-1"});
    CHECK("field leat. is reserved", {"command", "true"}, {"leat.", ""});
    CHECK("result_ttl is not a duration", {"result_ttl", "a"}, {"command", "true"});
    CHECK("live is neither 0 nor 1", {"live", "yes"}, {"command", "true"});
    CHECK(NULL, {"live", ""}, {"command", "true"}, {"result_ttl", ""});
    CHECK(NULL, {"live", "0"}, {"command", "true"}, {"result_ttl", "0"});
    CHECK(NULL, {"signature", "a"}, {"not_after", "b"}, {"command", "true"});
    CHECK("field command is given twice", {"command", "true"}, {"x", ""}, {"command", "true"});
    CHECK("field x is given twice", {"x", "1"}, {"command", "true"}, {"x", "2"});
    CHECK(NULL, {"x", "1"}, {"command", "true"}, {"X", "2"}, {"xx", "2"});
}

static void refuses_values_that_mean_nothing(void **state)
{
    (void)state;
    CHECK("unique_for", {"command", "true"}, {"unique_for", "soon"});
    CHECK("unique_next", {"command", "true"}, {"unique_next", "yes"});
    CHECK(NULL, {"command", "true"}, {"unique_for", ""}, {"unique_next", ""}, {"lane", ""});
    CHECK(NULL, {"command", "true"}, {"unique_for", "1h30m"}, {"unique_next", "0"}, {"unique", ""});
    assert_check(make_with("unique_for", 10, "5s\0x", 4), false, "unique_for");
    assert_check(make_with("lane", 4, "a\0b", 3), false, "lane");
    assert_check(make_with("unique", 6, "a\0b", 3), false, NULL);
    CHECK("timeout", {"command", "true"}, {"timeout", "soon"});
    CHECK("timeout", {"command", "true"}, {"timeout", ""});
    CHECK("timeout", {"command", "true"}, {"timeout", "-1s"});
    CHECK("max_attempts", {"command", "true"}, {"max_attempts", "0"});
    CHECK("max_attempts", {"command", "true"}, {"max_attempts", "1000001"});
    CHECK("max_attempts", {"command", "true"}, {"max_attempts", "1x"});
    CHECK("expires", {"command", "true"}, {"expires", "tomorrow"});
    CHECK("expires", {"command", "true"}, {"expires", ""});
    CHECK("expires", {"command", "true"}, {"expires", "nan"});
    CHECK("expires", {"command", "true"}, {"expires", "-1"});
    CHECK(NULL, {"command", "true"}, {"expires", "1700000000.5"}, {"timeout", "0"});
    assert_check(make_with("timeout", 7, "5s\0x", 4), false, "timeout");
    assert_check(make_with("max_attempts", 12, "5\0", 2), false, "max_attempts");
    assert_check(make_with("expires", 7, "5\0", 2), false, "expires");
}

static void refuses_names_that_are_no_variables(void **state)
{
    (void)state;
    CHECK("cannot be a variable", {"command", "true"}, {"BASH_FUNC_x%%", "() { :; }"});
    CHECK("cannot be a variable", {"command", "true"}, {"", "x"});
    CHECK("cannot be a variable", {"command", "true"}, {"a=b", "x"});
    CHECK("cannot be a variable", {"command", "true"}, {"a-b", "x"});
    CHECK("field \xc3\xa4 cannot", {"command", "true"}, {"\xc3\xa4", "x"});
    CHECK(NULL, {"command", "true"}, {"LD_PRELOAD", "x"}, {"PATH", "x"}, {"0", "digits may"});

    /* foreign bytes do not reach the log unescaped, nor does the whole of a long name */
    assert_check(make_with("a\n\x1b[2J\0b", 8, "", 0), false, "field a\\n\\x1b[2J\\x00b cannot");
    char name[202];
    memset(name, 'n', sizeof name);
    assert_check(make_with(name, 200, "", 0), false, NULL);
    assert_check(make_with(name, 201, "", 0), false,
                 "field nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn... ");

    /* a small buffer for the reason does not overflow */
    char reason[8];
    struct task *task = make_with(name, 201, "", 0);
    assert_false(task_check(task, false, reason, sizeof reason));
    assert_string_equal(reason, "field n");
    task_free(task);
}

static void bounds_what_becomes_arguments(void **state)
{
    (void)state;
    static char big[TASK_MAX_STRING + 2];
    memset(big, 'x', sizeof big - 1);

    /* TASK_a=VALUE is seven bytes longer than the value */
    assert_check(make_with("a", 1, big, TASK_MAX_STRING - 7), false, NULL);
    assert_check(make_with("a", 1, big, TASK_MAX_STRING - 6), false, "put it into payload");
    assert_check(make_with("a", 1, "x\0y", 3), false, "put it into payload");
    assert_check(make_with("payload", 7, big, sizeof big), false, NULL);

    struct buffer out = BUFFER_INIT;
    begin_task(&out, 1);
    resp_text(&out, "command");
    resp_bulk(&out, big, TASK_MAX_STRING);
    assert_check(decode(&out), false, NULL);
    begin_task(&out, 1);
    resp_text(&out, "command");
    resp_bulk(&out, big, TASK_MAX_STRING + 1);
    assert_check(decode(&out), false, "payload");
    begin_task(&out, 1);
    resp_text(&out, "command");
    resp_bulk(&out, "true\0", 5);
    assert_check(decode(&out), false, "NUL");

    /* all together */
    for (size_t count = 8; count <= 9; count++) {
        begin_task(&out, count + 1);
        resp_text(&out, "command");
        resp_text(&out, "true");
        for (size_t i = 0; i < count; i++) {
            char name[2] = {(char)('a' + i), '\0'};
            resp_text(&out, name);
            resp_bulk(&out, big, TASK_MAX_STRING - 7);
        }
        assert_check(decode(&out), false, count == 8 ? NULL : "1 MiB");
    }
}

static void bounds_names_of_lanes(void **state)
{
    (void)state;
    char name[201];
    memset(name, 'x', sizeof name);
    assert_check(make_with("lane", 4, name, 200), false, NULL);
    assert_check(make_with("lane", 4, name, 201), false, "lane is more than 200 bytes");
}

static void bounds_the_number_of_fields(void **state)
{
    (void)state;
    for (size_t count = 1000; count <= 1001; count++) {
        struct buffer out = BUFFER_INIT;
        begin_task(&out, count);
        resp_text(&out, "command");
        resp_text(&out, "true");
        for (size_t i = 1; i < count; i++) {
            char name[24];
            assert_true(snprintf(name, sizeof name, "field_%zu", i) > 0);
            resp_text(&out, name);
            resp_text(&out, "");
        }
        assert_check(decode(&out), false, count == 1000 ? NULL : "more than 1000 fields");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_every_part),
        cmocka_unit_test(decodes_nothing_of_another_form),
        cmocka_unit_test(finds_the_known_fields),
        cmocka_unit_test(wants_one_command),
        cmocka_unit_test(refuses_reserved_and_unsupported_names),
        cmocka_unit_test(refuses_values_that_mean_nothing),
        cmocka_unit_test(refuses_names_that_are_no_variables),
        cmocka_unit_test(bounds_what_becomes_arguments),
        cmocka_unit_test(bounds_names_of_lanes),
        cmocka_unit_test(bounds_the_number_of_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
