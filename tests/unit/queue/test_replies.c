/* Goal: replies in the documented form are read completely; every other form is refused, with
 * nothing left to free. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/resp.h"
#include "queue/calls.h"
#include "queue/replies.h"
#include "redis/server_command.h"

#define TASK                                                                                       \
    "*7\r\n$4\r\ng5-1\r\n$3\r\n4-0\r\n:1\r\n:0\r\n:1\r\n$1\r\n9\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
#define OTHER_TASK                                                                                 \
    "*7\r\n$4\r\ng6-1\r\n$3\r\n5-0\r\n:3\r\n:0\r\n:1\r\n$1\r\n9\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
#define CRASHED_TASK                                                                               \
    "*7\r\n$4\r\ng7-1\r\n$3\r\n6-0\r\n:1\r\n:1\r\n:1\r\n$1\r\n9\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
#define BAD_TASK "*7\r\n$4\r\ng5-1\r\n$3\r\n4-0\r\n:1\r\n:0\r\n:1\r\n$1\r\n9\r\n*1\r\n$1\r\na\r\n"
#define TASK_WITHOUT_TOKEN "*7\r\n:5\r\n$3\r\n4-0\r\n:1\r\n:0\r\n:1\r\n$1\r\n9\r\n*0\r\n"
#define CLAIM_HEAD "*10\r\n" CLAIM_FIGURES
#define LONG_CLAIM_HEAD "*11\r\n" CLAIM_FIGURES
#define CLAIM_FIGURES                                                                              \
    ":1\r\n$13\r\n1700000000000\r\n:60000\r\n$2\r\n17\r\n$4\r\nrate\r\n:0\r\n$6\r\ns123-"          \
    "4\r\n"

/* ---- claim ---- */

static void reads_a_claim(void **state)
{
    (void)state;
    struct queue_claim_reply out;
    redisReply *reply = RESP(CLAIM_HEAD "*2\r\n" TASK TASK "*1\r\n$4\r\ns7-0\r\n"
                                        "*2\r\n$3\r\n9-0\r\n$5\r\ncrash\r\n");
    assert_int_equal(queue_claim_read(reply, &out), 0);
    assert_int_equal(out.ended->elements, 2);
    assert_string_equal(out.ended->element[0]->str, "9-0");
    assert_string_equal(out.why, "rate");
    freeReplyObject(reply);
    assert_int_equal(out.now_ms, 1700000000000);
    assert_int_equal(out.lease_ms, 60000);
    assert_int_equal(out.closed_until_ms, 17);
    assert_int_equal(out.next_due_ms, 0);
    assert_string_equal(out.cursor, "s123-4");
    assert_int_equal(out.task_count, 2);
    assert_string_equal(out.tasks[1]->token, "g5-1");
    assert_int_equal(out.deferred_count, 1);
    assert_string_equal(out.deferred[0], "s7-0");

    /* the receiver owns what is taken */
    struct task *taken = out.tasks[0];
    out.tasks[0] = NULL;
    queue_claim_reply_free(&out);
    queue_claim_reply_free(&out);
    assert_string_equal(taken->tid, "4-0");
    task_free(taken);
}

/* Goal: only retried tasks have causes; an older library sends no causes. */
static void reads_how_earlier_attempts_ended(void **state)
{
    (void)state;
    struct queue_claim_reply out;
    redisReply *reply =
        RESP(LONG_CLAIM_HEAD "*2\r\n" TASK OTHER_TASK "*0\r\n*0\r\n"
                             "*1\r\n*2\r\n$4\r\ng6-1\r\n$16\r\nexit oom timeout\r\n");
    assert_int_equal(queue_claim_read(reply, &out), 0);
    freeReplyObject(reply);
    assert_int_equal(out.tasks[0]->ends, 0);
    assert_int_equal(out.tasks[1]->ends, CONFIG_CHECK_AFTER_TIMEOUT | CONFIG_CHECK_AFTER_KILLED);
    queue_claim_reply_free(&out);

    static const char *const forms[] = {
        LONG_CLAIM_HEAD "*1\r\n" TASK "*0\r\n*0\r\n$1\r\nx\r\n",
        LONG_CLAIM_HEAD "*1\r\n" TASK "*0\r\n*0\r\n*1\r\n*1\r\n$4\r\ng5-1\r\n",
        LONG_CLAIM_HEAD "*1\r\n" TASK "*0\r\n*0\r\n*1\r\n*2\r\n$4\r\ng6-1\r\n$4\r\nexit\r\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        reply = resp_parse(forms[i], strlen(forms[i]));
        errno = 0;
        assert_int_equal(queue_claim_read(reply, &out), -1);
        assert_int_equal(errno, EPROTO);
        freeReplyObject(reply);
    }
}

/* Goal: a task with crashes runs alone unless the library says otherwise; an older one does not. */
static void reads_what_runs_alone(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        bool alone;
    } cases[] = {{"*0\r\n", true},
                 {"*1\r\n*2\r\n$4\r\ng7-1\r\n$5\r\ncrash\r\n", true},
                 {"*1\r\n*3\r\n$4\r\ng7-1\r\n$5\r\ncrash\r\n$1\r\n0\r\n", true},
                 {"*1\r\n*3\r\n$4\r\ng7-1\r\n$5\r\ncrash\r\n$1\r\n1\r\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct queue_claim_reply out;
        char text[512];
        assert_in_range(snprintf(text, sizeof text,
                                 LONG_CLAIM_HEAD "*2\r\n" TASK CRASHED_TASK "*0\r\n*0\r\n%s",
                                 cases[i].row),
                        1, sizeof text - 1);
        redisReply *reply = resp_parse(text, strlen(text));
        assert_int_equal(queue_claim_read(reply, &out), 0);
        freeReplyObject(reply);
        assert_false(out.tasks[0]->alone);
        assert_int_equal(out.tasks[1]->alone, cases[i].alone);
        queue_claim_reply_free(&out);
    }
}

/* Goal: whatever numbers somebody has written into Redis, times can be subtracted, and the lease,
 * the wait of a task and the time until a task expires can be counted in ns or us. */
static void bounds_times(void **state)
{
    (void)state;
    static const char most[] = "$19\r\n9223372036854775807\r\n";
    struct queue_claim_reply out;
    struct queue_renew_reply renewed;
    char text[768];
    assert_in_range(snprintf(text, sizeof text,
                             "*15\r\n:1\r\n%s%s%s$0\r\n\r\n%s$0\r\n\r\n*1\r\n" TASK
                             "*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*2\r\n$4\r\ng5-1\r\n"
                             "$20\r\n-9223372036854775808\r\n",
                             most, most, most, most),
                    1, sizeof text - 1);
    redisReply *reply = resp_parse(text, strlen(text));
    assert_int_equal(queue_claim_read(reply, &out), 0);
    freeReplyObject(reply);
    assert_in_range(out.lease_ms, INT64_C(1) << 41, INT64_MAX / 2000000);
    assert_in_range(out.now_ms, INT64_C(1) << 52, INT64_MAX / 2);
    assert_in_range(out.closed_until_ms, INT64_C(1) << 52, INT64_MAX / 2);
    assert_in_range(out.next_due_ms, INT64_C(1) << 52, INT64_MAX / 2);
    assert_in_range(out.tasks[0]->waited_ms, INT64_C(1) << 52, INT64_MAX / 1000);
    queue_claim_reply_free(&out);

    assert_in_range(snprintf(text, sizeof text, "*6\r\n:1\r\n%s%s*0\r\n*0\r\n:0\r\n", most, most),
                    1, sizeof text - 1);
    reply = resp_parse(text, strlen(text));
    assert_int_equal(queue_renew_read(reply, &renewed), 0);
    assert_in_range(renewed.lease_ms, INT64_C(1) << 41, INT64_MAX / 2000000);
    freeReplyObject(reply);

    /* within a part of the lease a worker must be able to reach Redis again */
    reply = RESP("*6\r\n:1\r\n:5\r\n:0\r\n*0\r\n*0\r\n:0\r\n");
    assert_int_equal(queue_renew_read(reply, &renewed), 0);
    assert_int_equal(renewed.lease_ms, QUEUE_MIN_LEASE_MS);
    freeReplyObject(reply);
    reply = RESP("*10\r\n:1\r\n:5\r\n:1\r\n:0\r\n$0\r\n\r\n:0\r\n$0\r\n\r\n*0\r\n*0\r\n*0\r\n");
    assert_int_equal(queue_claim_read(reply, &out), 0);
    assert_int_equal(out.lease_ms, QUEUE_MIN_LEASE_MS);
    queue_claim_reply_free(&out);
    freeReplyObject(reply);

    assert_in_range(snprintf(text, sizeof text, "*3\r\n:1\r\n:1\r\n%s", most), 1, sizeof text - 1);
    reply = resp_parse(text, strlen(text));
    assert_in_range(queue_await_expires_ms(reply, 0), INT64_C(1) << 41, INT64_MAX / 2000000);
    freeReplyObject(reply);
}

/* Goal: a task that cannot be decoded is taken as damaged, and the others as they are. */
static void takes_a_damaged_task(void **state)
{
    (void)state;
    struct queue_claim_reply out;
    char reason[80];
    redisReply *reply = RESP(CLAIM_HEAD "*3\r\n" TASK BAD_TASK "*1\r\n$4\r\ns7-0\r\n"
                                        "*0\r\n*0\r\n");
    assert_int_equal(queue_claim_read(reply, &out), 0);
    freeReplyObject(reply);
    assert_int_equal(out.task_count, 3);
    assert_false(out.tasks[0]->damaged);
    assert_string_equal(out.tasks[1]->tid, "4-0");
    assert_string_equal(out.tasks[2]->token, "s7-0");
    assert_string_equal(out.tasks[2]->tid, "s7-0");
    for (size_t i = 1; i < 3; i++) {
        assert_true(out.tasks[i]->damaged);
        assert_false(task_check(out.tasks[i], true, reason, sizeof reason));
        assert_string_equal(reason, "Redis answered it in a form that cannot be read");
    }
    queue_claim_reply_free(&out);
}

static void refuses_a_malformed_claim(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "$-1\r\n",
        "*0\r\n",
        "*1\r\n:1\r\n",
        CLAIM_HEAD "*2\r\n" TASK TASK_WITHOUT_TOKEN "*0\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*2\r\n$4\r\ns7-0\r\n:1\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "$-1\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*0\r\n$-1\r\n",
        CLAIM_HEAD "$-1\r\n*0\r\n*0\r\n",
        /* what is no token, of a damaged task and of a deferred one */
        CLAIM_HEAD "*1\r\n*1\r\n$3\r\n7-0\r\n*0\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*1\r\n$4\r\nx7-0\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*1\r\n$1\r\ns\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*1\r\n$4\r\nsa-b\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*1\r\n$2\r\ns7\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*1\r\n$5\r\ns7-0 \r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*1\r\n$5\r\ns7--0\r\n*0\r\n",
        CLAIM_HEAD "*1\r\n" TASK "*1\r\n$23\r\ns7-18446744073709551616\r\n*0\r\n",
        "*13\r\n" CLAIM_FIGURES "*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*1\r\n$4\r\nx7-0\r\n",
        /* another protocol, invalid times, a cursor that is too long */
        "*10\r\n:2\r\n:1\r\n:1\r\n:0\r\n$0\r\n\r\n:0\r\n$0\r\n\r\n*0\r\n*0\r\n*0\r\n",
        "*10\r\n:1\r\n:-1\r\n:1\r\n:0\r\n$0\r\n\r\n:0\r\n$0\r\n\r\n*0\r\n*0\r\n*0\r\n",
        "*10\r\n:1\r\n:1\r\n$1\r\nx\r\n:0\r\n$0\r\n\r\n:0\r\n$0\r\n\r\n*0\r\n*0\r\n*0\r\n",
        "*10\r\n:1\r\n:1\r\n:1\r\n:0\r\n$0\r\n\r\n:0\r\n$"
        "48\r\n012345678901234567890123456789012345678901234567"
        "\r\n*0\r\n*0\r\n*0\r\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct queue_claim_reply out;
        redisReply *reply = resp_parse(forms[i], strlen(forms[i]));
        errno = 0;
        assert_int_equal(queue_claim_read(reply, &out), -1);
        assert_int_equal(errno, EPROTO);
        freeReplyObject(reply);
    }
}

/* ---- renew, register, finish, requeue, version ---- */

static void reads_renewals(void **state)
{
    (void)state;
    struct queue_renew_reply out;
    redisReply *reply =
        RESP("*6\r\n:1\r\n$1\r\n5\r\n:60000\r\n*1\r\n$4\r\ns1-1\r\n*1\r\n$4\r\ng2-1\r\n:107\r\n");
    assert_int_equal(queue_renew_read(reply, &out), 0);
    assert_int_equal(out.dead_growth, 107);
    assert_int_equal(out.now_ms, 5);
    assert_int_equal(out.lost->elements, 1);
    assert_string_equal(out.cancelled->element[0]->str, "g2-1");
    assert_null(out.ended);
    assert_int_equal(queue_register_read(reply, &out), -1);
    freeReplyObject(reply);

    reply = RESP(
        "*8\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n:0\r\n*2\r\n$3\r\n1-1\r\n$7\r\nexpired\r\n"
        "*1\r\n$4\r\nlate\r\n");
    assert_int_equal(queue_renew_read(reply, &out), 0);
    assert_string_equal(out.ended->element[1]->str, "expired");
    assert_string_equal(out.reasons->element[0]->str, "late");
    freeReplyObject(reply);

    reply = RESP("*8\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n:1\r\n$3\r\n8-1\r\n*2\r\n$"
                 "4\r\nrate\r\n$4\r\n20/s\r\n");
    assert_int_equal(queue_register_read(reply, &out), 0);
    assert_string_equal(out.settings->element[1]->str, "20/s");
    assert_true(out.more);
    assert_string_equal(out.wakeup_id, "8-1");
    assert_int_equal(out.joined, 0);
    freeReplyObject(reply);

    reply = RESP("*9\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n:0\r\n$3\r\n8-1\r\n*0\r\n"
                 "$16\r\n1795413210228808\r\n");
    assert_int_equal(queue_register_read(reply, &out), 0);
    assert_true(out.joined == 1795413210228808);
    freeReplyObject(reply);

    /* somebody has written another text: it is unknown, and keeps no worker away */
    reply = RESP("*9\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n:0\r\n$3\r\n8-1\r\n*0\r\n"
                 "$21\r\n100000000000000000000\r\n");
    assert_int_equal(queue_register_read(reply, &out), 0);
    assert_int_equal(out.joined, 0);
    freeReplyObject(reply);

    static const char *const wrong[] = {
        "*6\r\n:1\r\n$1\r\n5\r\n:60000\r\n*1\r\n:1\r\n*0\r\n:0\r\n",
        "*5\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n",
        "*6\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n*0\r\n",
        "*7\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n:0\r\n$1\r\nx\r\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reply = resp_parse(wrong[i], strlen(wrong[i]));
        assert_int_equal(queue_renew_read(reply, &out), -1);
        freeReplyObject(reply);
    }
}

struct follows {
    size_t count;
    const char *tid; /* the last one, and for how long */
    int64_t for_ms;
};

static void on_follow(void *context, const char *tid, int64_t for_ms)
{
    struct follows *follows = context;
    *follows = (struct follows){follows->count + 1, tid, for_ms};
}

/* Goal: registrations tell who is followed, and never for longer than a call may ask. */
static void reads_who_is_followed(void **state)
{
    (void)state;
    struct queue_renew_reply out;
    struct follows follows = {0};
    redisReply *reply =
        RESP("*10\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n:0\r\n$3\r\n8-1\r\n*0\r\n"
             "$1\r\n7\r\n*5\r\n$2\r\n50\r\n$3\r\n4-0\r\n$1\r\n0\r\n$3\r\n5-0\r\n$1\r\n9\r\n");
    assert_int_equal(queue_register_read(reply, &out), 0);
    queue_registered_followed(&out, on_follow, &follows);
    assert_int_equal(follows.count, 1);
    assert_string_equal(follows.tid, "4-0");
    assert_int_equal(follows.for_ms, 50);
    freeReplyObject(reply);

    reply = RESP("*10\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n:0\r\n$3\r\n8-1\r\n*0\r\n"
                 "$1\r\n7\r\n*2\r\n$15\r\n999999999999999\r\n$3\r\n4-0\r\n");
    assert_int_equal(queue_register_read(reply, &out), 0);
    queue_registered_followed(&out, on_follow, &follows);
    assert_int_equal(follows.for_ms, QUEUE_FOLLOW_MOST_MS);
    freeReplyObject(reply);

    reply = RESP("*10\r\n:1\r\n$1\r\n5\r\n:60000\r\n*0\r\n*0\r\n:0\r\n$3\r\n8-1\r\n*0\r\n$"
                 "1\r\n7\r\n*1\r\n:1\r\n");
    assert_int_equal(queue_register_read(reply, &out), -1);
    freeReplyObject(reply);
}

static void reads_finishes(void **state)
{
    (void)state;
    enum queue_settled settled = QUEUE_KEPT;
    const char *error = NULL;
    redisReply *reply =
        RESP("*8\r\n:1\r\n$2\r\nok\r\n$9\r\ncancelled\r\n$6\r\nfenced\r\n$4\r\ngone\r\n"
             "$8\r\nvanished\r\n$5\r\nlater\r\n$13\r\nOOM not taken\r\n");
    static const enum queue_settled expected[] = {QUEUE_OK,   QUEUE_CALLED_OFF, QUEUE_FENCED,
                                                  QUEUE_GONE, QUEUE_VANISHED,   QUEUE_LATER,
                                                  QUEUE_KEPT};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(queue_finish_read(reply, i, &settled, &error), 0);
        assert_int_equal(settled, expected[i]);
    }
    assert_string_equal(error, "OOM not taken");
    assert_int_equal(queue_finish_read(reply, 7, &settled, &error), -1);
    assert_int_equal(queue_finish_read(reply, SIZE_MAX, &settled, &error), -1);
    freeReplyObject(reply);
}

static void reads_requeues_and_versions(void **state)
{
    (void)state;
    int64_t first = 0, second = 0;
    struct queue_requeue_reply answer;
    redisReply *reply = RESP("*5\r\n:1\r\n:100\r\n:1\r\n:0\r\n*2\r\n$3\r\n1-0\r\n$5\r\ncrash\r\n");
    assert_int_equal(queue_requeue_read(reply, &answer), 0);
    assert_int_equal(answer.moved, 100);
    assert_true(answer.more);
    assert_false(answer.known);
    assert_int_equal(answer.ended->elements, 2);
    freeReplyObject(reply);

    /* the sum of many such numbers still fits into 64 bits */
    reply = RESP("*5\r\n:1\r\n:9223372036854775807\r\n:1\r\n:1\r\n*0\r\n");
    assert_int_equal(queue_requeue_read(reply, &answer), 0);
    assert_int_equal(answer.moved, INT32_MAX);
    freeReplyObject(reply);

    reply = RESP("*2\r\n:2\r\n:7\r\n");
    assert_int_equal(queue_version_read(reply, &first, &second), 0);
    assert_int_equal(first, 2);
    assert_int_equal(second, 7);
    assert_int_equal(queue_requeue_read(reply, &answer), -1);
    freeReplyObject(reply);
    assert_int_equal(queue_version_read(NULL, &first, &second), -1);
}

/* ---- blocking reads ---- */

static void note(void *context, const char *token)
{
    struct buffer *seen = context;
    (void)buffer_printf(seen, "%s ", token);
}

static void assert_block(const char *text, int expected, const char *tokens)
{
    struct queue queue;
    struct buffer seen = BUFFER_INIT;
    assert_int_equal(queue_init(&queue, "q", "leat"), 0);
    redisReply *reply = resp_parse(text, strlen(text));
    assert_int_equal(queue_block_read(&queue, reply, note, &seen), expected);
    assert_int_equal(seen.size, strlen(tokens));
    if (seen.size > 0) {
        assert_memory_equal(seen.data, tokens, seen.size);
    }
    freeReplyObject(reply);
    buffer_free(&seen);
    queue_free(&queue);
}

static void reads_what_a_block_brings(void **state)
{
    (void)state;
    assert_block("*-1\r\n", 0, "");
    assert_block("$-1\r\n", 0, "");
    assert_block("*1\r\n*2\r\n$1\r\nq\r\n*0\r\n", 0, "");
    assert_block("*2\r\n*2\r\n$6\r\n{q}:go\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
                 "*2\r\n$1\r\nq\r\n*2\r\n*2\r\n$3\r\n2-1\r\n*0\r\n*2\r\n$3\r\n2-2\r\n*-1\r\n",
                 3, "g1-1 s2-1 s2-2 ");

    /* half of it malformed: nothing is taken */
    assert_block("*2\r\n*2\r\n$1\r\nq\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n*2\r\n$1\r\nx\r\n*0\r\n",
                 -1, "");
    assert_block("*1\r\n*2\r\n$1\r\nq\r\n*2\r\n*2\r\n$3\r\n1-1\r\n*0\r\n:1\r\n", -1, "");
    assert_block("*1\r\n*2\r\n$1\r\nq\r\n*2\r\n*2\r\n$3\r\n1-1\r\n*0\r\n*2\r\n$1\r\nx\r\n*0\r\n",
                 -1, "");
    assert_block("*1\r\n*2\r\n$1\r\nq\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n", 1, "s1-1 ");
    assert_block(":1\r\n", -1, "");
    assert_block("*1\r\n*2\r\n$1\r\nq\r\n*1\r\n*2\r\n$"
                 "50\r\n01234567890123456789012345678901234567890123456789"
                 "\r\n*0\r\n",
                 -1, "");
}

static void reads_the_bell(void **state)
{
    (void)state;
    char id[QUEUE_CURSOR_SIZE] = "0-0";
    struct queue_wakeup wakeup;
    redisReply *reply = RESP("*-1\r\n");
    assert_int_equal(queue_listen_read(reply, id, sizeof id, &wakeup), 0);
    assert_false(wakeup.startable || wakeup.pause || wakeup.cancel);
    assert_string_equal(id, "0-0");
    freeReplyObject(reply);

    reply = RESP(
        "*1\r\n*2\r\n$8\r\n{q}:bell\r\n*2\r\n*2\r\n$3\r\n4-0\r\n*0\r\n*2\r\n$3\r\n5-0\r\n*0\r\n");
    assert_int_equal(queue_listen_read(reply, id, sizeof id, &wakeup), 1);
    assert_string_equal(id, "5-0");
    assert_int_equal(queue_listen_read(reply, id, 3, &wakeup), -1);
    freeReplyObject(reply);

    reply = RESP("*1\r\n*1\r\n$8\r\n{q}:bell\r\n");
    assert_int_equal(queue_listen_read(reply, id, sizeof id, &wakeup), -1);
    freeReplyObject(reply);
}

/* The reply of a blocking read with wakeups for these reasons. */
static redisReply *wakeups(const char *const *reasons, size_t count)
{
    struct buffer built = BUFFER_INIT;
    /* failures show when the whole is parsed */
    (void)buffer_printf(&built, "*1\r\n*2\r\n$1\r\nb\r\n*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        (void)buffer_append_text(&built, "*2\r\n");
        resp_text(&built, "5-0");
        (void)buffer_append_text(&built, "*4\r\n");
        resp_text(&built, "why");
        resp_text(&built, reasons[i]);
        resp_text(&built, "joined");
        resp_text(&built, i == 1 ? "42" : "41");
    }
    return resp_take(&built);
}

/* The wakeup that is read from these reasons. */
static struct queue_wakeup wakeup_for(const char *const *reasons, size_t count)
{
    char id[QUEUE_CURSOR_SIZE];
    struct queue_wakeup wakeup;
    redisReply *reply = wakeups(reasons, count);
    assert_int_equal(queue_listen_read(reply, id, sizeof id, &wakeup), 1);
    freeReplyObject(reply);
    return wakeup;
}

/* Goal: each reason is distinguished, several at once are combined, and if some may have been
 * missed, or a reason is unknown, everything that may matter is set. */
static void tells_the_reasons_of_a_wakeup(void **state)
{
    (void)state;
    const char *all[QUEUE_WAKEUPS_KEPT] = {"due", "cancel", "gate", "due"};
    struct queue_wakeup wakeup = wakeup_for(all, 1);
    assert_true(wakeup.startable && !wakeup.settings && !wakeup.pause && !wakeup.cancel);
    wakeup = wakeup_for(all + 1, 1);
    assert_true(!wakeup.startable && !wakeup.settings && !wakeup.pause && wakeup.cancel);
    wakeup = wakeup_for(all + 2, 1);
    assert_true(wakeup.startable && wakeup.settings && wakeup.pause && !wakeup.cancel);
    wakeup = wakeup_for(all, 4);
    assert_true(wakeup.startable && wakeup.settings && wakeup.pause && wakeup.cancel);
    wakeup = wakeup_for((const char *const[]){"conf", "novel"}, 1);
    assert_true(wakeup.startable && wakeup.settings && !wakeup.pause && !wakeup.cancel);
    wakeup = wakeup_for((const char *const[]){"conf", "novel"}, 2);
    assert_true(wakeup.startable && wakeup.pause && !wakeup.cancel);
    for (size_t i = 0; i < QUEUE_WAKEUPS_KEPT; i++) {
        all[i] = "due";
    }
    wakeup = wakeup_for((const char *const[]){"joined 41", "joined 42", "joined 41"}, 3);
    assert_true(wakeup.joined == 42 && !wakeup.startable && !wakeup.pause && !wakeup.cancel);
    wakeup = wakeup_for(all, QUEUE_WAKEUPS_KEPT - 1);
    assert_true(wakeup.startable && !wakeup.pause && !wakeup.cancel);
    wakeup = wakeup_for(all, QUEUE_WAKEUPS_KEPT);
    assert_true(wakeup.startable && wakeup.pause && wakeup.cancel && wakeup.joined == 42);
}

/* Goal: wakeups of followers are told apart, and wake nothing else. */
static void tells_who_is_followed(void **state)
{
    (void)state;
    static const char *const all[] = {"follow 500 7-0", "follow 0 8-0", "follow x 8-0", "follow 5",
                                      "follow 900000 9-0"};
    char id[QUEUE_CURSOR_SIZE];
    struct queue_wakeup wakeup;
    struct follows follows = {0};
    redisReply *reply = wakeups(all, 1);
    assert_int_equal(queue_listen_read(reply, id, sizeof id, &wakeup), 1);
    assert_false(wakeup.startable || wakeup.settings || wakeup.pause || wakeup.cancel);
    queue_wakeup_followed(&wakeup, on_follow, &follows);
    assert_int_equal(follows.count, 1);
    assert_string_equal(follows.tid, "7-0");
    assert_int_equal(follows.for_ms, 500);
    freeReplyObject(reply);

    reply = wakeups(all, sizeof all / sizeof *all);
    assert_int_equal(queue_listen_read(reply, id, sizeof id, &wakeup), 1);
    queue_wakeup_followed(&wakeup, on_follow, &follows);
    assert_int_equal(follows.count, 3);
    assert_string_equal(follows.tid, "9-0");
    assert_int_equal(follows.for_ms, QUEUE_FOLLOW_MOST_MS);
    freeReplyObject(reply);
}

/* ---- INFO ---- */

static void assert_info(const char *text, struct server_info expected)
{
    struct server_info out;
    struct buffer built = BUFFER_INIT;
    resp_text(&built, text);
    redisReply *reply = resp_take(&built);
    assert_int_equal(server_info_read(reply, &out), 0);
    freeReplyObject(reply);
    assert_string_equal(out.version, expected.version);
    assert_string_equal(out.maxmemory_policy, expected.maxmemory_policy);
    assert_int_equal(out.major, expected.major);
    assert_int_equal(out.move_crashes, expected.move_crashes);
    assert_int_equal(out.is_sentinel, expected.is_sentinel);
    assert_int_equal(out.is_master, expected.is_master);
    assert_int_equal(out.loading, expected.loading);
    assert_int_equal(out.aof_enabled, expected.aof_enabled);
    assert_int_equal(out.rdb_enabled, expected.rdb_enabled);
    assert_int_equal(out.maxmemory, expected.maxmemory);
    assert_int_equal(out.saves_fail, expected.saves_fail);
    assert_int_equal(out.refused, expected.refused);
}

static void reads_info(void **state)
{
    (void)state;
    assert_info(
        "# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:1\r\n\r\n# Memory\r\n"
        "maxmemory:1048576\r\nmaxmemory_policy:noeviction\r\n\r\n# Persistence\r\nloading:0\r\n"
        "aof_enabled:1\r\nrdb_saves:0\r\n# Replication\r\nrole:master\r\n",
        (struct server_info){.version = "7.0.15",
                             .major = 7,
                             .is_master = true,
                             .aof_enabled = true,
                             .rdb_enabled = true,
                             .maxmemory_policy = "noeviction",
                             .maxmemory = 1048576});

    /* old changes and never a snapshot: there are no snapshots */
    assert_info("redis_version:10.1\r\nrole:slave\r\nloading:1\r\nuptime_in_seconds:4000\r\n"
                "rdb_changes_since_last_save:5\r\nrdb_last_bgsave_time_sec:-1\r\nrdb_saves:0",
                (struct server_info){.version = "10.1", .major = 10, .loading = true});

    /* the disk refused; a snapshot matters only if snapshots are configured */
    assert_info("redis_version:7.2\r\naof_last_write_status:err\r\nrdb_last_bgsave_status:ok",
                (struct server_info){.version = "7.2",
                                     .major = 7,
                                     .move_crashes = true,
                                     .rdb_enabled = true,
                                     .saves_fail = true});
    assert_info("redis_version:7.2\r\naof_last_write_status:ok\r\nrdb_last_bgsave_status:err",
                (struct server_info){.version = "7.2",
                                     .major = 7,
                                     .move_crashes = true,
                                     .rdb_enabled = true,
                                     .saves_fail = true});

    assert_info("redis_version:7.2.4\r\nserver_mode:sentinel\r\nvalkey_version:8.1.1",
                (struct server_info){
                    .version = "7.2.4", .major = 7, .is_sentinel = true, .rdb_enabled = true});
    assert_info("redis_version:7.2.7\r\nredis_mode:sentinel",
                (struct server_info){
                    .version = "7.2.7", .major = 7, .is_sentinel = true, .rdb_enabled = true});
    assert_info(
        "redis_version:7.0.15\r\nunexpected_error_replies:19\r\n",
        (struct server_info){.version = "7.0.15", .major = 7, .rdb_enabled = true, .refused = 19});

    /* names match as a whole, long values are cut, and a value that is not a number is ignored */
    assert_info("xredis_version:1\r\nredis_version:0123456789012345678901234567890123456789\r\n"
                "maxmemory:much\r\nrole:masterful-and-much-too-long\r\nmaxmemory_policy:",
                (struct server_info){.version = "0123456789012345678901234567890",
                                     .major = 2147483647,
                                     .rdb_enabled = true});
}

static void knows_versions_that_a_moved_slot_kills(void **state)
{
    (void)state;
    static const struct {
        const char *info;
        bool crashes;
    } cases[] = {
        {"redis_version:7.0.15", false},
        {"redis_version:7.2.0", true},
        {"redis_version:7.2.6", true},
        {"redis_version:7.2.7", false},
        {"redis_version:7.2.10", false},
        {"redis_version:8.0.2", false},
        {"redis_version:7.2.4\r\nvalkey_version:7.2.5", true},
        {"redis_version:7.2.4\r\nvalkey_version:7.2.6", false},
        {"redis_version:7.2.4\r\nvalkey_version:8.0.1", false},
        {"redis_version:unknown", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct server_info out;
        struct buffer built = BUFFER_INIT;
        resp_text(&built, cases[i].info);
        redisReply *reply = resp_take(&built);
        assert_int_equal(server_info_read(reply, &out), 0);
        assert_int_equal(out.move_crashes, cases[i].crashes);
        freeReplyObject(reply);
    }
}

static void refuses_other_info(void **state)
{
    (void)state;
    struct server_info out;
    redisReply *reply = RESP("$4\r\nrole\r\n");
    assert_int_equal(server_info_read(reply, &out), -1);
    assert_int_equal(server_info_read(NULL, &out), -1);
    freeReplyObject(reply);
    reply = RESP(":1\r\n");
    assert_int_equal(server_info_read(reply, &out), -1);
    freeReplyObject(reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_claim),
        cmocka_unit_test(reads_how_earlier_attempts_ended),
        cmocka_unit_test(reads_what_runs_alone),
        cmocka_unit_test(bounds_times),
        cmocka_unit_test(takes_a_damaged_task),
        cmocka_unit_test(refuses_a_malformed_claim),
        cmocka_unit_test(reads_who_is_followed),
        cmocka_unit_test(tells_who_is_followed),
        cmocka_unit_test(reads_renewals),
        cmocka_unit_test(reads_finishes),
        cmocka_unit_test(reads_requeues_and_versions),
        cmocka_unit_test(reads_what_a_block_brings),
        cmocka_unit_test(reads_the_bell),
        cmocka_unit_test(tells_the_reasons_of_a_wakeup),
        cmocka_unit_test(reads_info),
        cmocka_unit_test(knows_versions_that_a_moved_slot_kills),
        cmocka_unit_test(refuses_other_info),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
