/* Goal: calls about lists have the form of leat.lua and Redis, and their replies are read
 * completely or refused; the lists that a worker knows are found by name, and their number is
 * limited. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/resp.h"
#include "daemon/lists/known_lists.h"
#include "queue/lists.h"
#include "queue/replies.h"

/* ---- calls ---- */

/* The last `count` arguments of the command, each with a newline. */
static void assert_tail(struct command *command, size_t count, const char *expected)
{
    const char *data = NULL;
    size_t size = 0;
    assert_int_equal(command_finish(command, &data, &size), 0);
    redisReply *words = resp_parse(data, size);
    struct buffer text = BUFFER_INIT;
    assert_true(words->elements >= count);
    for (size_t i = words->elements - count; i < words->elements; i++) {
        assert_int_equal(buffer_append(&text, words->element[i]->str, words->element[i]->len), 0);
        assert_int_equal(buffer_append_text(&text, "\n"), 0);
    }
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
    buffer_free(&text);
    freeReplyObject(words);
}

static void builds_an_intake(void **state)
{
    (void)state;
    struct command command = {0};
    struct queue queue;
    assert_int_equal(queue_init(&queue, "q", "g"), 0);
    struct queue_intake intake = {
        .key = {"work:a", 6}, .kind = "list", .most = 7, .field = "payload", .lane = {"a", 1}};
    queue_intake(&command, &queue, &intake);
    assert_int_equal(command.arguments, 3 + QUEUE_PRODUCER_KEYS + 1 + 6);
    assert_tail(&command, 7, "work:a\n7\npayload\na\n\nlist\n\n");

    intake.unique = intake.marks = true;
    intake.lane = (struct bytes){NULL, 0};
    intake.kind = "zset";
    queue_intake(&command, &queue, &intake);
    assert_tail(&command, 5, "payload\n\nitem\nzset\n1\n");
    queue_lists_turn(&command, &queue, 5000, true);
    assert_tail(&command, 2, "5000\n1\n");
    command_free(&command);
    queue_free(&queue);
}

static void escapes_the_prefix(void **state)
{
    (void)state;
    struct command command = {0};
    queue_scan_lists(&command, "17", "a*b?[c]\\:");
    assert_tail(&command, 8, "SCAN\n17\nMATCH\na\\*b\\?\\[c\\]\\\\:*\nCOUNT\n500\nTYPE\nlist\n");
    command_free(&command);
}

/* ---- replies ---- */

static void reads_an_intake(void **state)
{
    (void)state;
    struct queue_intake_reply out;
    redisReply *reply = RESP("*5\r\n:1\r\n:500\r\n:499\r\n:3\r\n:1\r\n");
    assert_int_equal(queue_intake_read(reply, &out), 0);
    assert_int_equal(out.taken, 500);
    assert_int_equal(out.added, 499);
    assert_int_equal(out.left, 3);
    assert_true(out.full);
    freeReplyObject(reply);

    int64_t wait_ms = 0;
    reply = RESP("*2\r\n:1\r\n$4\r\n1234\r\n");
    assert_int_equal(queue_lists_turn_read(reply, &wait_ms), 0);
    assert_int_equal(wait_ms, 1234);
    freeReplyObject(reply);
}

struct seen {
    struct buffer text;
    int all; /* how often anything may have changed */
};

static void see(void *context, struct bytes key)
{
    struct seen *seen = context;
    assert_int_equal(buffer_append(&seen->text, key.data, key.size), 0);
    assert_int_equal(buffer_append_text(&seen->text, "\n"), 0);
}

static void see_change(void *context, const struct bytes *key)
{
    struct seen *seen = context;
    if (key) {
        see(seen, *key);
    } else {
        seen->all++;
    }
}

static void reads_a_step_of_a_walk(void **state)
{
    (void)state;
    struct seen seen = {0};
    char cursor[QUEUE_CURSOR_SIZE] = "";
    redisReply *reply =
        RESP("*2\r\n$20\r\n12345678901234567890\r\n*2\r\n$1\r\na\r\n$3\r\nb\0c\r\n");
    assert_int_equal(queue_scan_lists_read(reply, cursor, see, &seen), 0);
    assert_string_equal(cursor, "12345678901234567890");
    assert_int_equal(seen.text.size, 6);
    assert_memory_equal(seen.text.data, "a\nb\0c\n", 6);
    freeReplyObject(reply);
    buffer_free(&seen.text);
}

static void reads_what_has_changed(void **state)
{
    (void)state;
    struct seen seen = {0};
    redisReply *reply = RESP("*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n");
    assert_int_equal(queue_watch_read(reply, see_change, &seen), 1);
    freeReplyObject(reply);
    reply =
        RESP("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    assert_int_equal(queue_watch_read(reply, see_change, &seen), 0);
    freeReplyObject(reply);
    reply = RESP("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n$-1\r\n");
    assert_int_equal(queue_watch_read(reply, see_change, &seen), 0);
    freeReplyObject(reply);
    assert_int_equal(seen.all, 1);
    assert_int_equal(seen.text.size, 4);
    assert_memory_equal(seen.text.data, "a\nb\n", 4);
    buffer_free(&seen.text);
}

static void refuses_other_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "$-1\r\n",
        "*0\r\n",
        ":-1\r\n",
        "*2\r\n:2\r\n:0\r\n",
        "*2\r\n:1\r\n:-1\r\n",
        "*5\r\n:1\r\n$1\r\nx\r\n:1\r\n:1\r\n:1\r\n",
        "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n",
        "*2\r\n$48\r\n123456789012345678901234567890123456789012345678\r\n*0\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n*1\r\n:1\r\n",
        "*3\r\n:1\r\n$1\r\nx\r\n*0\r\n",
        "*2\r\n$7\r\nmessage\r\n$1\r\nx\r\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct seen seen = {0};
        struct queue_intake_reply out;
        int64_t number = 0;
        char cursor[QUEUE_CURSOR_SIZE] = "";
        redisReply *reply = resp_parse(forms[i], strlen(forms[i]));
        assert_int_equal(queue_intake_read(reply, &out), -1);
        assert_int_equal(errno, EPROTO);
        assert_int_equal(queue_lists_turn_read(reply, &number), -1);
        assert_int_equal(queue_scan_lists_read(reply, cursor, see, &seen), -1);
        assert_int_equal(queue_list_length_read(reply, &number), -1);
        assert_int_equal(queue_watch_read(reply, see_change, &seen), -1);
        assert_int_equal(seen.text.size + (size_t)seen.all, 0);
        freeReplyObject(reply);
    }
}

/* ---- known lists ---- */

static struct bytes numbered(char text[32], int number)
{
    int size = snprintf(text, 32, "work:%d", number);
    return (struct bytes){text, (size_t)size};
}

static void finds_lists_by_name(void **state)
{
    (void)state;
    struct known_lists known;
    known_lists_init(&known);
    char text[32];
    for (int i = 0; i < 1000; i++) {
        assert_non_null(known_lists_add(&known, numbered(text, i * 7919 % 1000), false));
    }
    for (int i = 0; i < 1000; i++) {
        struct list *list = known_lists_find(&known, numbered(text, i));
        assert_non_null(list);
        assert_string_equal(list->name.data, text);
    }
    assert_null(known_lists_find(&known, (struct bytes){"work:1\0", 7}));
    assert_null(known_lists_find(&known, (struct bytes){"", 0}));
    assert_non_null(known_lists_add(&known, (struct bytes){"work:1\0", 7}, false));
    assert_non_null(known_lists_find(&known, (struct bytes){"work:1\0", 7}));
    assert_int_equal(known.count, 1001);
    known_lists_clear(&known);
    assert_int_equal(known.count, 0);
    assert_null(known_lists_find(&known, numbered(text, 1)));
}

static void the_oldest_makes_room(void **state)
{
    (void)state;
    struct known_lists known;
    known_lists_init(&known);
    char text[32];
    struct list *pinned = known_lists_add(&known, (struct bytes){"pinned", 6}, true);
    for (int i = 0; i < KNOWN_MAX; i++) {
        assert_non_null(known_lists_add(&known, numbered(text, i), false));
    }
    assert_int_equal(known.count, KNOWN_MAX + 1);

    /* lists that are touched, busy or pinned stay */
    known_lists_touch(&known, known_lists_find(&known, numbered(text, 0)));
    known_lists_find(&known, numbered(text, 1))->busy = true;
    assert_non_null(known_lists_add(&known, numbered(text, KNOWN_MAX), false));
    assert_int_equal(known.count, KNOWN_MAX + 1);
    assert_non_null(known_lists_find(&known, numbered(text, 0)));
    assert_non_null(known_lists_find(&known, numbered(text, 1)));
    assert_null(known_lists_find(&known, numbered(text, 2)));
    assert_ptr_equal(known_lists_find(&known, (struct bytes){"pinned", 6}), pinned);

    /* while all of the old ones are busy there is no room */
    struct list *list;
    TAILQ_FOREACH(list, &known.ages, age) {
        list->queued = true;
    }
    assert_null(known_lists_add(&known, numbered(text, -1), false));
    assert_non_null(known_lists_add(&known, numbered(text, -1), true));
    known_lists_clear(&known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_an_intake),       cmocka_unit_test(escapes_the_prefix),
        cmocka_unit_test(reads_an_intake),        cmocka_unit_test(reads_a_step_of_a_walk),
        cmocka_unit_test(reads_what_has_changed), cmocka_unit_test(refuses_other_forms),
        cmocka_unit_test(finds_lists_by_name),    cmocka_unit_test(the_oldest_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
