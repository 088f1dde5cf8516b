/* Goal: a dead letter in the documented form becomes the environment of a hook; every other form
 * is refused, with nothing left to free. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/resp.h"
#include "base/buffer.h"
#include "exec/start/environment.h"
#include "queue/dead_letter.h"

#define END_OF(status)                                                                             \
    "*6\r\n$4\r\nexit\r\n" status "$6\r\nexit 3\r\n$1\r\n5\r\n$5\r\nh:1:n\r\n$3\r\nn\0o\r\n"
#define HEAD "*6\r\n$3\r\n9-1\r\n$3\r\n4-0\r\n:7\r\n$4\r\n1500\r\n"
#define LETTER                                                                                     \
    HEAD END_OF("$1\r\n3\r\n") "*4\r\n$7\r\ncommand\r\n$6\r\nmake x\r\n$1\r\na\r\n$1\r\nb\r\n"

static void reads_letters(void **state)
{
    (void)state;
    struct dead_letter_reply out;
    redisReply *reply = RESP("*3\r\n:1\r\n*2\r\n" LETTER LETTER "*1\r\n$3\r\n2-0\r\n");
    assert_int_equal(dead_letter_read(reply, &out), 0);
    assert_int_equal(out.count, 2);
    assert_int_equal(out.given_up->elements, 1);
    freeReplyObject(reply);

    struct task *letter = out.letters[0];
    assert_string_equal(letter->token, "9-1");
    assert_string_equal(letter->tid, "4-0");
    assert_int_equal(letter->fence, 7);
    assert_int_equal(letter->enqueued_ms, 1500);
    assert_int_equal(letter->payload->size, 3);
    assert_memory_equal(letter->payload->data, "n\0o", 3);
    assert_string_equal(letter->command->data, "make x");
    assert_int_equal(letter->field_count, 1);
    assert_string_equal(letter->end->reason.data, "exit 3");

    /* the receiver owns what is taken */
    out.letters[0] = NULL;
    dead_letter_reply_free(&out);
    dead_letter_reply_free(&out);
    assert_string_equal(letter->end->worker.data, "h:1:n");
    task_free(letter);
}

static void refuses_other_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "$-1\r\n",
        "*0\r\n",
        "*1\r\n:1\r\n",
        "*3\r\n:2\r\n*0\r\n*0\r\n",
        "*3\r\n$1\r\n1\r\n*0\r\n*0\r\n",
        "*3\r\n:1\r\n:1\r\n*0\r\n",
        "*3\r\n:1\r\n*0\r\n*1\r\n:1\r\n",
        "*3\r\n:1\r\n*1\r\n$1\r\nx\r\n*0\r\n",
        "*3\r\n:1\r\n*1\r\n*6\r\n$3\r\n9-1\r\n$3\r\n4-0\r\n:-7\r\n$1\r\n1\r\n*0\r\n*0\r\n*0\r\n",
        "*3\r\n:1\r\n*1\r\n*6\r\n$3\r\n9-1\r\n$3\r\n4-0\r\n:7\r\n$1\r\nx\r\n*0\r\n*0\r\n*0\r\n",
        "*3\r\n:1\r\n*1\r\n*6\r\n$3\r\n9-1\r\n$3\r\n4-0\r\n:7\r\n$1\r\n1\r\n*0\r\n*0\r\n*0\r\n",
    };
    struct dead_letter_reply out;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        redisReply *reply = resp_parse(forms[i], strlen(forms[i]));
        errno = 0;
        assert_int_equal(dead_letter_read(reply, &out), -1);
        assert_int_equal(errno, EPROTO);
        freeReplyObject(reply);
    }
    /* the second of two; a field without value; an end of another type */
    redisReply *reply =
        RESP("*3\r\n:1\r\n*2\r\n" LETTER HEAD END_OF("$0\r\n\r\n") "*1\r\n$1\r\na\r\n*0\r\n");
    assert_int_equal(dead_letter_read(reply, &out), -1);
    freeReplyObject(reply);
    /* what is no id of an entry: Redis would refuse each later call */
    reply = RESP("*3\r\n:1\r\n*1\r\n*6\r\n$3\r\n9-x\r\n$3\r\n4-0\r\n:7\r\n$4\r\n1500\r\n" END_OF(
        "$1\r\n3\r\n") "*0\r\n*0\r\n");
    assert_int_equal(dead_letter_read(reply, &out), -1);
    freeReplyObject(reply);
    reply = RESP("*3\r\n:1\r\n*1\r\n" HEAD END_OF(":3\r\n") "*0\r\n*0\r\n");
    assert_int_equal(dead_letter_read(reply, &out), -1);
    freeReplyObject(reply);
    assert_int_equal(dead_letter_read(NULL, &out), -1);
}

/* A dead letter with that field and others around it. */
static struct task *letter_with(const char *name, const char *value, size_t size)
{
    struct buffer text = BUFFER_INIT;
    assert_int_equal(buffer_append(&text, HEAD, sizeof HEAD - 1), 0);
    assert_int_equal(buffer_append(&text, END_OF("$1\r\n3\r\n"), sizeof END_OF("$1\r\n3\r\n") - 1),
                     0);
    assert_int_equal(buffer_printf(&text, "*6\r\n$1\r\na\r\n$1\r\n1\r\n$%zu\r\n%s\r\n$%zu\r\n",
                                   strlen(name), name, size),
                     0);
    assert_int_equal(buffer_append(&text, value, size), 0);
    assert_int_equal(buffer_append_text(&text, "\r\n$1\r\nz\r\n$1\r\n2\r\n"), 0);
    redisReply *row = resp_parse(text.data, text.size);
    struct task *letter = dead_letter_decode(row);
    assert_non_null(letter);
    freeReplyObject(row);
    buffer_free(&text);
    return letter;
}

/* Goal: fields that no environment can hold are left out, and the others are there. */
static void leaves_out_what_cannot_be_told(void **state)
{
    (void)state;
    static char long_value[TASK_MAX_STRING];
    memset(long_value, 'x', sizeof long_value);
    static const struct {
        const char *name, *value;
        size_t size, fields;
    } cases[] = {
        {"b", "1", 1, 3},
        {"bad-name", "1", 1, 2},
        {"leat.tid", "1", 1, 2},
        {"payload", "1", 1, 2},
        {"timeout", "1", 1, 2},
        {"a", "2", 1, 2},
        {"nul", "a\0b", 3, 2},
        {"long", long_value, sizeof long_value, 2},
        {"command", "a\0b", 3, 2},
        {"command", long_value, sizeof long_value, 2},
        {"id", long_value, sizeof long_value, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct task *letter = letter_with(cases[i].name, cases[i].value, cases[i].size);
        assert_int_equal(letter->field_count, cases[i].fields);
        assert_string_equal(letter->fields[0].value.data, "1");
        assert_null(letter->command);
        assert_null(letter->label);
        task_free(letter);
    }
}

static const char *find(char **block, const char *name)
{
    size_t size = strlen(name);
    const char *found = NULL;
    for (size_t i = 0; block[i]; i++) {
        if (strncmp(block[i], name, size) == 0 && block[i][size] == '=') {
            assert_null(found); /* twice */
            found = block[i] + size + 1;
        }
    }
    return found;
}

/* Goal: the environment says how the task ended instead of which attempt it is. */
static void becomes_an_environment(void **state)
{
    (void)state;
    struct config config = {
        .queue.name = (char *)"mails",
        .task = {.shell = (char *)"/bin/sh", .directory = (char *)"/", .path = (char *)"/bin"}};
    struct environment *environment = environment_new(&config, NULL, NULL);
    redisReply *row = RESP(LETTER);
    struct task *letter = dead_letter_decode(row);
    freeReplyObject(row);
    assert_non_null(environment);
    assert_non_null(letter);
    struct environment_limits limits = {.max_attempts = 5, .deadline_wall_ms = 2500};
    char **block = environment_block(environment, letter, &limits);
    assert_non_null(block);
    assert_string_equal(find(block, "LEAT_TASK"), "4-0");
    assert_string_equal(find(block, "LEAT_CAUSE"), "exit");
    assert_string_equal(find(block, "LEAT_STATUS"), "3");
    assert_string_equal(find(block, "LEAT_REASON"), "exit 3");
    assert_string_equal(find(block, "LEAT_ATTEMPTS"), "5");
    assert_string_equal(find(block, "LEAT_WORKER"), "h:1:n");
    assert_string_equal(find(block, "LEAT_COMMAND"), "make x");
    assert_string_equal(find(block, "LEAT_FENCE"), "7");
    assert_string_equal(find(block, "LEAT_ENQUEUED_AT"), "1.500");
    assert_string_equal(find(block, "LEAT_DEADLINE"), "2.500");
    assert_string_equal(find(block, "TASK_a"), "b");
    assert_null(find(block, "LEAT_ATTEMPT"));
    assert_null(find(block, "LEAT_MAX_ATTEMPTS"));
    free(block);
    task_free(letter);
    environment_free(environment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_letters),
        cmocka_unit_test(refuses_other_forms),
        cmocka_unit_test(leaves_out_what_cannot_be_told),
        cmocka_unit_test(becomes_an_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
