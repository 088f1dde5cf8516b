/* Goal: signatures are those of leat-protocol.7, with the page's own examples; nothing else is a
 * signature. Runs in the project's root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/resp.h"
#include "base/buffer.h"
#include "queue/keyring.h"
#include "queue/replies.h"
#include "queue/signature.h"

#define KEY "0123456789abcdef0123456789abcdef"

static int put(void *context, const void *data, size_t size)
{
    return buffer_append(context, data, size);
}

/* ---- the examples of the page */

enum { FIELDS = 8 };

struct example {
    char secret[200], stream[200], form[500], signature[300];
    char fields[FIELDS][200];
    size_t count;
};

static bool take_line(struct example *example, const char *line)
{
    char *equals;
    if (sscanf(line, "key %199[^\n]", example->secret) == 1 ||
        sscanf(line, "stream %199[^\n]", example->stream) == 1 ||
        sscanf(line, "form %499[^\n]", example->form) == 1) {
        return false;
    }
    assert_true(example->count < FIELDS);
    if (sscanf(line, "field %199[^\n]", example->fields[example->count]) == 1) {
        equals = strchr(example->fields[example->count++], '=');
        assert_non_null(equals);
        *equals = '\0';
        return false;
    }
    return sscanf(line, "signature %299[^\n]", example->signature) == 1;
}

static size_t fields_of(const struct example *example, struct task_field *fields)
{
    for (size_t i = 0; i < example->count; i++) {
        const char *name = example->fields[i];
        fields[i] = (struct task_field){bytes_of(name), bytes_of(name + strlen(name) + 1)};
    }
    fields[example->count] =
        (struct task_field){bytes_of("signature"), bytes_of(example->signature)};
    return example->count + 1;
}

static void check_example(const struct example *example)
{
    struct task_field fields[FIELDS + 1];
    size_t count = fields_of(example, fields);
    struct signature signature;
    struct buffer form = BUFFER_INIT, secret = BUFFER_INIT;
    assert_true(signature_parse(bytes_of(example->signature), &signature));
    assert_int_equal(
        signature_canonical(&signature, bytes_of(example->stream), fields, count, put, &form), 0);
    assert_int_equal(form.size, strlen(example->form));
    assert_memory_equal(form.data, example->form, form.size);

    /* and the key gives that signature */
    assert_int_equal(buffer_printf(&secret, "2026a:%s%c", example->secret, 0), 0);
    struct keyring *keyring = keyring_new((char *[]){secret.data, NULL});
    struct task task = {.fields = fields, .field_count = count};
    char reason[160] = "";
    struct keyring_mark mark;
    assert_non_null(keyring);
    assert_true(task_check(&task, false, reason, sizeof reason) || strstr(reason, "command"));
    assert_int_equal(keyring_verify(keyring, example->stream, &task, &mark, reason, sizeof reason),
                     KEYRING_GOOD);
    assert_int_equal(mark.not_after_ms, 4000000000000);
    assert_memory_equal(mark.mark, signature.mac, sizeof mark.mark);
    assert_int_equal(keyring_verify(keyring, "other", &task, &mark, reason, sizeof reason),
                     KEYRING_REFUSED);
    keyring_free(keyring);
    buffer_free(&form);
    buffer_free(&secret);
}

static void the_page_s_examples(void **state)
{
    (void)state;
    FILE *page = fopen("src/queue/leat-protocol.7", "r");
    struct example example = {0};
    char line[600];
    size_t found = 0;
    bool inside = false;
    assert_non_null(page);
    while (fgets(line, sizeof line, page)) {
        inside = strncmp(line, ".Sh SIGNED TASKS", 16) == 0 || (inside && line[1] != 'S');
        if (inside && line[0] != '.' && line[0] != '\n' && take_line(&example, line)) {
            check_example(&example);
            example = (struct example){0};
            found++;
        }
        example.count = *example.secret ? example.count : 0;
    }
    assert_int_equal(fclose(page), 0);
    assert_int_equal(found, 2);
}

/* ---- the text */

#define MAC "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void texts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "leat1",
        "leat1:k:n",
        "leat1:k:n:",
        "leat2:k:n:" MAC,
        "Leat1:k:n:" MAC,
        " leat1:k:n:" MAC,
        "leat1::n:" MAC,
        "leat1:k::" MAC,
        "leat1:k n:n:" MAC,
        "leat1:k:n\n:" MAC,
        "leat1:k:n:" MAC "0",
        "leat1:k:n:" MAC ":",
        "leat1:k:n:A0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        "leat1:k:n:g0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        "leat1:0123456789012345678901234567890123456789012345678901234567890123x:n:" MAC,
    };
    struct signature signature;
    char text[SIGNATURE_TEXT_SIZE];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (signature_parse(bytes_of(bad[i]), &signature)) {
            fail_msg("taken: %s", bad[i]);
        }
    }
    assert_false(signature_parse((struct bytes){"leat1:k:n:" MAC "\0", 75}, &signature));
    static const char longest[] =
        "leat1:0123456789012345678901234567890123456789012345678901234567890123:"
        "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij-_.Z:" MAC;
    assert_int_equal(sizeof longest, SIGNATURE_TEXT_SIZE);
    assert_true(signature_parse(bytes_of(longest), &signature));
    signature_format(&signature, text);
    assert_string_equal(text, longest);
}

static void times(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "-1", "1.5", " 1", "1 ", "1e3", "1234567890123", "x"};
    int64_t ms;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(signature_parse_time(bytes_of(bad[i]), &ms));
    }
    assert_true(signature_parse_time(bytes_of("999999999999"), &ms));
    assert_int_equal(ms, 999999999999000);
}

/* ---- signing */

/* Goal: every field counts, with any bytes; the same key with another name or nonce gives
 * another MAC. */
static void what_is_signed(void **state)
{
    (void)state;
    struct keyring *keyring = keyring_new((char *[]){(char *)"a:" KEY, (char *)"b:" KEY, NULL});
    struct task_field fields[3] = {
        {bytes_of("command"), bytes_of("true")},
        {bytes_of("payload"), {"\0\xff\n", 3}},
        {bytes_of("not_after"), bytes_of("2000")},
    };
    char first[SIGNATURE_TEXT_SIZE], second[SIGNATURE_TEXT_SIZE];
    assert_non_null(keyring);
    assert_int_equal(keyring_sign(keyring, "c", "q", fields, 3, first), -1);
    assert_int_equal(keyring_sign(keyring, NULL, "q", fields, 3, first), 0);
    assert_int_equal(keyring_sign(keyring, "b", "q", fields, 3, second), 0);
    assert_memory_equal(first, "leat1:a:", 8);
    assert_memory_equal(second, "leat1:b:", 8);
    assert_string_not_equal(first + 8, second + 8);

    struct task_field signed_fields[4] = {
        fields[0], fields[1], fields[2], {bytes_of("signature"), bytes_of(first)}};
    struct task task = {.fields = signed_fields, .field_count = 4};
    struct keyring_mark mark;
    char reason[160];
    assert_true(task_check(&task, false, reason, sizeof reason));
    assert_int_equal(keyring_verify(keyring, "q", &task, &mark, reason, sizeof reason),
                     KEYRING_GOOD);
    assert_int_equal(mark.not_after_ms, 2000000);
    signed_fields[1].value.size = 2;
    assert_int_equal(keyring_verify(keyring, "q", &task, &mark, reason, sizeof reason),
                     KEYRING_REFUSED);
    keyring_free(keyring);
}

/* ---- replies of Redis */

static int read_once(const char *wire, size_t index, enum queue_once *once, const char *expected)
{
    struct buffer out = BUFFER_INIT;
    const char *tid;
    assert_int_equal(buffer_append_text(&out, wire), 0);
    redisReply *reply = resp_take(&out);
    int result = queue_once_read(reply, index, once, &tid);
    assert_string_equal(tid, expected);
    freeReplyObject(reply);
    return result;
}

static void answers(void **state)
{
    (void)state;
    static const char all[] = "*5\r\n:1\r\n$2\r\nok\r\n$8\r\nseen 1-2\r\n+late\r\n$6\r\nforged\r\n";
    static const enum queue_once wanted[] = {QUEUE_ONCE_OK, QUEUE_ONCE_SEEN, QUEUE_ONCE_LATE,
                                             QUEUE_ONCE_FORGED};
    static const char *const bad[] = {
        "*2\r\n:2\r\n$2\r\nok\r\n",
        "*2\r\n$1\r\n1\r\n$2\r\nok\r\n",
        "*2\r\n:1\r\n$3\r\nokk\r\n",
        "*2\r\n:1\r\n$0\r\n\r\n",
        "*2\r\n:1\r\n:1\r\n",
        "*2\r\n:1\r\n$-1\r\n",
        "*1\r\n:1\r\n",
        "*0\r\n",
        "-ERR x\r\n",
        "*2\r\n:1\r\n$4\r\nseen\r\n",
        "$2\r\nok\r\n",
    };
    enum queue_once once;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(read_once(all, i, &once, i == 1 ? "1-2" : ""), 0);
        assert_int_equal(once, wanted[i]);
    }
    assert_int_equal(read_once(all, 4, &once, ""), -1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_once(bad[i], 0, &once, ""), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_s_examples), cmocka_unit_test(texts),   cmocka_unit_test(times),
        cmocka_unit_test(what_is_signed),      cmocka_unit_test(answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
