/* Goal: commands have the wire form of RESP with any bytes, and each call of the queue has its
 * arguments in the order of leat.lua. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "queue/calls.h"
#include "queue/library.h"
#include "redis/command.h"
#include "redis/server_command.h"

static void assert_wire(struct command *command, const char *expected, size_t size)
{
    const char *data = NULL;
    size_t got = 0;
    assert_int_equal(command_finish(command, &data, &got), 0);
    assert_int_equal(got, size);
    assert_memory_equal(data, expected, size);
    assert_int_equal(data[size], '\0');
}

#define ASSERT_WIRE(command, text) assert_wire(command, text, sizeof text - 1)

static void writes_arguments_of_any_bytes(void **state)
{
    (void)state;
    struct command command = {0};
    command_begin(&command);
    command_add_text(&command, "SET");
    command_add(&command, "a\0\r\nb", 5);
    command_add(&command, NULL, 0);
    command_add_number(&command, INT64_MIN);
    ASSERT_WIRE(&command,
                "*4\r\n$3\r\nSET\r\n$5\r\na\0\r\nb\r\n$0\r\n\r\n$20\r\n-9223372036854775808\r\n");

    /* finishing twice changes nothing, and later arguments are counted */
    command_add_text(&command, "x");
    ASSERT_WIRE(&command, "*5\r\n$3\r\nSET\r\n$5\r\na\0\r\nb\r\n$0\r\n\r\n$20\r\n"
                          "-9223372036854775808\r\n$1\r\nx\r\n");

    /* again in the same memory */
    command_begin(&command);
    command_add_text(&command, "PING");
    ASSERT_WIRE(&command, "*1\r\n$4\r\nPING\r\n");
    command_free(&command);
}

static void counts_many_arguments(void **state)
{
    (void)state;
    enum { MANY = 12345 };
    struct command command = {0};
    const char *data = NULL;
    size_t size = 0;
    command_begin(&command);
    for (int i = 0; i < MANY; i++) {
        command_add_text(&command, "y");
    }
    assert_int_equal(command_finish(&command, &data, &size), 0);
    assert_int_equal(size, strlen("*12345\r\n") + MANY * strlen("$1\r\ny\r\n"));
    assert_memory_equal(data, "*12345\r\n$1\r\ny\r\n", 15);
    command_free(&command);
}

static void refuses_what_is_not_whole(void **state)
{
    (void)state;
    struct command command = {0};
    const char *data = NULL;
    size_t size = 0;
    command_begin(&command);
    assert_int_equal(command_finish(&command, &data, &size), -1);

    /* as after an allocation that failed */
    command_add_text(&command, "PING");
    command.wire.failed = true;
    command_add_text(&command, "again");
    assert_int_equal(command_finish(&command, &data, &size), -1);
    command_begin(&command);
    command_add_text(&command, "PING");
    assert_int_equal(command_finish(&command, &data, &size), 0);
    command_free(&command);
}

static void names_keys_of_one_slot(void **state)
{
    (void)state;
    struct queue queue;
    assert_int_equal(queue_init(&queue, "emails", "leat"), 0);
    assert_string_equal(queue.keys[QUEUE_KEY_STREAM], "emails");
    assert_string_equal(queue.keys[QUEUE_KEY_GO], "{emails}:go");
    assert_string_equal(queue.keys[QUEUE_KEY_WORKERS], "{emails}:workers");
    queue_free(&queue);

    assert_int_equal(queue_init(&queue, "{a}b", "leat"), 0);
    assert_string_equal(queue.keys[QUEUE_KEY_STREAM], "{a}b");
    assert_string_equal(queue.keys[QUEUE_KEY_DEAD], "{a}b:dead");
    queue_free(&queue);

    /* empty braces are no hash tag */
    assert_int_equal(queue_init(&queue, "x}y{", "leat"), 0);
    assert_string_equal(queue.keys[QUEUE_KEY_BELL], "{x}y{}:bell");
    queue_free(&queue);
    queue_free(&queue);
}

static const char KEYS[] =
    "$1\r\nq\r\n$8\r\n{q}:bell\r\n$11\r\n{q}:waiting\r\n$11\r\n{q}:delayed\r\n"
    "$9\r\n{q}:names\r\n$8\r\n{q}:conf\r\n$9\r\n{q}:stats\r\n$9\r\n{q}:lanes\r\n$9\r\n{q}:laned\r\n"
    "$6\r\n{q}:go\r\n$11\r\n{q}:running\r\n$8\r\n{q}:dead\r\n$11\r\n{q}:workers\r\n"
    "$10\r\n{q}:cancel\r\n$11\r\n{q}:awaited\r\n";

/* head, all keys, tail */
static void assert_function(struct command *command, const char *head, const char *tail)
{
    char expected[2048];
    int size = snprintf(expected, sizeof expected, "%s%s%s", head, KEYS, tail);
    assert_true(size > 0 && (size_t)size < sizeof expected);
    assert_wire(command, expected, (size_t)size);
}

static void calls_workers_functions(void **state)
{
    (void)state;
    struct queue queue;
    struct command command = {0};
    const char *const tokens[] = {"s1-0", "g2-0"};
    assert_int_equal(queue_init(&queue, "q", "leat"), 0);

    queue_claim(&command, &queue, "h:1:n", 3, 2, QUEUE_SCAN_START, tokens, 2);
    assert_function(
        &command, "*25\r\n$5\r\nFCALL\r\n$10\r\nleat_claim\r\n$2\r\n15\r\n",
        "$4\r\nleat\r\n$5\r\nh:1:n\r\n$1\r\n3\r\n$1\r\n2\r\n$4\r\ng0-0\r\n$4\r\ns1-0\r\n"
        "$4\r\ng2-0\r\n");
    queue_renew(&command, &queue, "h:1:n", "{}", tokens, 1);
    assert_function(&command, "*22\r\n$5\r\nFCALL\r\n$10\r\nleat_renew\r\n$2\r\n15\r\n",
                    "$4\r\nleat\r\n$5\r\nh:1:n\r\n$2\r\n{}\r\n$4\r\ns1-0\r\n");
    const struct queue_default shared_defaults[] = {{"lease_ms", "60000"}, {"rate", "20/s"}};
    queue_register(&command, &queue, "h:1:n", "{}", shared_defaults, 2, tokens, 1);
    assert_function(&command, "*27\r\n$5\r\nFCALL\r\n$13\r\nleat_register\r\n$2\r\n15\r\n",
                    "$4\r\nleat\r\n$5\r\nh:1:n\r\n$2\r\n{}\r\n$1\r\n2\r\n$8\r\nlease_ms\r\n$"
                    "5\r\n60000\r\n$4\r\nrate\r\n$4\r\n20/s\r\n$4\r\ns1-0\r\n");
    queue_requeue(&command, &queue, "h:1:n", true);
    assert_function(&command, "*21\r\n$5\r\nFCALL\r\n$12\r\nleat_requeue\r\n$2\r\n15\r\n",
                    "$4\r\nleat\r\n$5\r\nh:1:n\r\n$1\r\n1\r\n");

    struct queue_result result = {
        .token = "s1-0",
        .outcome = VERDICT_DEAD,
        .cause = "exit",
        .status = "7",
        .duration_us = 12,
        .stdout_tail = {.data = "o\0t", .size = 3},
        .result_ttl_ms = 900,
    };
    queue_finish_begin(&command, &queue, "h:1:n");
    queue_finish_add(&command, &result);
    queue_finish_add_successes(&command, (struct bytes){"\x91\xa0", 2});
    const char *data = NULL;
    size_t size = 0;
    assert_int_equal(command_finish(&command, &data, &size), 0);
    static const char tail[] =
        "$4\r\ns1-0\r\n$4\r\ndead\r\n$1\r\n5\r\n$5\r\ncause\r\n$4\r\nexit\r\n"
        "$6\r\nstatus\r\n$1\r\n7\r\n$11\r\nduration_us\r\n$2\r\n12\r\n"
        "$6\r\nstdout\r\n$3\r\no\0t\r\n$13\r\nresult_ttl_ms\r\n$3\r\n900\r\n"
        "$9\r\nsuccesses\r\n$2\r\n\x91\xa0\r\n";
    assert_memory_equal(data, "*35\r\n", 5);
    assert_memory_equal(data + size - (sizeof tail - 1), tail, sizeof tail - 1);

    command_free(&command);
    queue_free(&queue);
}

static void builds_plain_commands(void **state)
{
    (void)state;
    struct queue queue;
    struct command command = {0};
    assert_int_equal(queue_init(&queue, "q", "leat"), 0);

    queue_block(&command, &queue, "c", 4, 20000);
    ASSERT_WIRE(&command,
                "*13\r\n$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$4\r\nleat\r\n$1\r\nc\r\n$5\r\n"
                "COUNT\r\n$1\r\n4\r\n$5\r\nBLOCK\r\n$5\r\n20000\r\n$7\r\nSTREAMS\r\n$6\r\n"
                "{q}:go\r\n$1\r\nq\r\n$1\r\n>\r\n$1\r\n>\r\n");
    queue_listen(&command, &queue, "5-1", 900);
    ASSERT_WIRE(&command, "*6\r\n$5\r\nXREAD\r\n$5\r\nBLOCK\r\n$3\r\n900\r\n$7\r\nSTREAMS\r\n$8\r\n"
                          "{q}:bell\r\n$3\r\n5-1\r\n");
    server_unblock(&command, 42);
    ASSERT_WIRE(&command, "*3\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n$2\r\n42\r\n");
    server_kill_client(&command, 42);
    ASSERT_WIRE(&command, "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$2\r\n42\r\n");

    queue_enqueue_begin(&command, &queue);
    queue_enqueue_task(&command, "+500", 1);
    queue_enqueue_field(&command, (struct bytes){"command", 7}, (struct bytes){"true", 4});
    ASSERT_WIRE(&command,
                "*16\r\n$5\r\nFCALL\r\n$12\r\nleat_enqueue\r\n$1\r\n9\r\n$1\r\nq\r\n$8\r\n"
                "{q}:bell\r\n$11\r\n{q}:waiting\r\n$11\r\n{q}:delayed\r\n$9\r\n{q}:names\r"
                "\n$8\r\n{q}:conf\r\n$9\r\n{q}:stats\r\n$9\r\n{q}:lanes\r\n$9\r\n{q}:laned\r\n$"
                "4\r\n+500\r\n$1\r\n1\r\n$7\r\n"
                "command\r\n$4\r\ntrue\r\n");
    command_free(&command);
    queue_free(&queue);
}

static void carries_the_library(void **state)
{
    (void)state;
    assert_memory_equal(library_source, "#!lua name=leat\n", 16);
    assert_int_equal(library_source[library_size()], '\0');
    assert_int_equal(strlen(library_source), library_size());
    assert_true(library_version() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_arguments_of_any_bytes), cmocka_unit_test(counts_many_arguments),
        cmocka_unit_test(refuses_what_is_not_whole),     cmocka_unit_test(names_keys_of_one_slot),
        cmocka_unit_test(calls_workers_functions),       cmocka_unit_test(builds_plain_commands),
        cmocka_unit_test(carries_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
