/* A log whose sink is full: writing never blocks, and lost records are counted. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/log_world.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"

/* The sum of the numbers in records about dropped records. */
static unsigned long long told_dropped(const char *text)
{
    static const char words[] = " log records were dropped";
    unsigned long long sum = 0;

    for (; (text = strstr(text, words)); text++) {
        const char *digits = text;

        while (digits[-1] >= '0' && digits[-1] <= '9') {
            digits--;
        }
        sum += strtoull(digits, NULL, 10);
    }
    return sum;
}

/* Fills the sink with task output until it takes no more. Returns the number of written records. */
static int flood(void)
{
    static const char line[] = "output output output output output output output output output";
    uint64_t before = log_dropped();
    int written = 0;

    while (log_dropped() < before + 10) {
        log_bytes(LOG_INFO, LOG_ID_TASK_OUTPUT, NULL, 0, line, sizeof line - 1);
        written++;
    }
    return written - 10;
}

/* Goal: if the journal does not read, task output is dropped and counted, but leat's own records
 * are kept. */
static void a_full_journal_costs_output_only(void **state)
{
    struct world *world = *state;
    int outputs = 0, owns = 0, reports = 0;

    assert_int_equal(log_open(LOG_TARGET_JOURNAL, LOG_INFO, "leatd"), 0);
    int written = flood();
    for (int i = 0; i < 50; i++) {
        log_text(LOG_INFO, "own %d", i);
    }
    uint64_t dropped = log_dropped();
    log_bytes(LOG_INFO, LOG_ID_TASK_OUTPUT, NULL, 0, "late", 4);
    assert_int_equal(log_dropped(), dropped + 1);

    /* the journal reads again: the kept records arrive in order, with the number of lost ones */
    for (int round = 0; round < 100; round++) {
        while (receive(world)) {
            char expected[64];

            assert_int_equal(buffer_append(&world->text, "", 1), 0);
            assert_true(snprintf(expected, sizeof expected, "MESSAGE=own %d\n", owns) > 0);
            outputs += strstr(world->text.data, "MESSAGE=output") ? 1 : 0;
            owns += strstr(world->text.data, expected) ? 1 : 0;
            reports += strstr(world->text.data, "11 log records were dropped") ? 1 : 0;
        }
        log_flush();
    }
    assert_int_equal(outputs, written);
    assert_int_equal(owns, 50);
    assert_int_equal(reports, 1);
}

static bool offer(void)
{
    return log_offer(LOG_INFO, LOG_ID_TASK_OUTPUT, NULL, 0, "offered", 7);
}

/* Goal: offered records are dropped while the journal takes nothing for long. They wait again as
 * soon as it takes anything, even if that is only the record about dropped ones. */
static void a_slow_journal_is_not_a_stuck_one(void **state)
{
    struct world *world = *state;

    assert_int_equal(log_open(LOG_TARGET_JOURNAL, LOG_INFO, "leatd"), 0);
    while (offer())
        ;
    uint64_t dropped = log_dropped();
    while (!offer()) {
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(log_dropped(), dropped + 1);

    assert_true(receive(world));
    assert_false(offer());
    assert_int_equal(log_dropped(), dropped + 1);
}

/* Goal: a full pipe on stderr never blocks the program; later lines are complete and in order. */
static void a_full_pipe_does_not_block(void **state)
{
    struct world *world = *state;
    struct buffer all = BUFFER_INIT;
    char text[6000];

    memset(text, 'z', sizeof text);
    assert_int_equal(log_open(LOG_TARGET_STDERR, LOG_INFO, "leatd"), 0);
    flood();
    for (int i = 0; i < 20; i++) {
        log_event(LOG_INFO, LOG_ID_TASK_DEAD, NULL, 0, "own %d %.*s", i, 6000, text);
    }
    for (int round = 0; round < 20; round++) {
        const char *part = read_stderr(world);

        assert_int_equal(buffer_append_text(&all, part), 0);
        log_flush();
    }
    assert_int_equal(buffer_append(&all, "", 1), 0);

    /* each line has one beginning and one end */
    assert_int_equal(count_of(all.data, "leatd"), count_of(all.data, "\n"));
    const char *at = all.data;
    for (int i = 0; i < 20; i++) {
        char expected[32];

        assert_true(snprintf(expected, sizeof expected, "info: own %d z", i) > 0);
        at = strstr(at, expected);
        assert_non_null(at);
    }
    assert_int_equal(told_dropped(all.data), 10);
    buffer_free(&all);
}

/* Goal: the same holds if stderr cannot be reopened: a full, blocking socket. */
static void a_full_socket_does_not_block(void **state)
{
    struct world *world = *state;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_true(dup2(ends[0], STDERR_FILENO) >= 0);
    close(ends[0]);
    close(world->reader);
    world->reader = ends[1];
    assert_int_equal(log_open(LOG_TARGET_STDERR, LOG_INFO, "leatd"), 0);
    flood();
    log_text(LOG_INFO, "own");
    for (int round = 0; round < 20; round++) {
        const char *part = read_stderr(world);

        if (strstr(part, "info: own\n")) {
            return;
        }
        log_flush();
    }
    fail_msg("the kept record did not come");
}

/* Goal: before the log is opened, records go to plain stderr without blocking. */
static void an_unopened_log_does_not_block(void **state)
{
    struct world *world = *state;

    log_text(LOG_WARNING, "early");
    assert_matches(read_stderr(world), " leat warning: early\n$");
    flood();
    log_text(LOG_WARNING, "own");
    assert_null(strstr(read_stderr(world), "own"));
    log_flush();
    assert_matches(read_stderr(world), "own\n");
}

/* Writes records of 1 MB in all to a full sink, which keeps a quarter; then closes the log. */
static void fill_what_is_kept(enum log_target target, int count, bool in_burst)
{
    char text[10000];
    uint64_t limit = (uint64_t)count;

    memset(text, 'z', sizeof text);
    assert_int_equal(log_open(target, LOG_INFO, "leatd"), 0);
    flood();
    uint64_t dropped = log_dropped();
    if (in_burst) {
        log_burst_begin();
    }
    for (int i = 0; i < count; i++) {
        log_event(LOG_INFO, NULL, NULL, 0, "%.*s", 1000000 / count, text);
    }
    log_burst_end();
    assert_true(log_dropped() - dropped > limit * 7 / 10);
    assert_true(log_dropped() - dropped < limit * 8 / 10);

    /* closing does not wait forever, and counts records that it could not write */
    log_close();
    assert_int_equal(log_dropped() - dropped, limit);
}

/* Goal: the size of kept records is limited; others are dropped and counted. */
static void keeping_has_a_bound(void **state)
{
    (void)state;
    fill_what_is_kept(LOG_TARGET_JOURNAL, 100, false);
}

/* Goal: lines of a burst are whole and in order, and none comes after a later record. */
static void a_burst_keeps_its_order(void **state)
{
    struct world *world = *state;
    char expected[64];

    assert_int_equal(log_open(LOG_TARGET_STDERR, LOG_INFO, "leatd"), 0);
    log_burst_begin();
    for (int i = 0; i < 200; i++) {
        log_text(LOG_INFO, "own %d", i);
    }
    log_bytes(LOG_INFO, LOG_ID_TASK_OUTPUT, NULL, 0, "own 200", 7);
    log_text(LOG_INFO, "own 201");
    log_burst_end();
    log_text(LOG_INFO, "own 202");
    const char *at = read_stderr(world);
    for (int i = 0; i < 203; i++) {
        assert_true(snprintf(expected, sizeof expected, "own %d\n", i) > 0);
        at = strstr(at, expected);
        assert_non_null(at);
    }
}

/* Goal: if stderr takes nothing, each record of a burst is kept, or counted as dropped. */
static void a_burst_counts_what_it_drops(void **state)
{
    (void)state;
    fill_what_is_kept(LOG_TARGET_STDERR, 1000, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_unopened_log_does_not_block),    TEST(a_full_journal_costs_output_only),
        TEST(a_slow_journal_is_not_a_stuck_one), TEST(a_full_pipe_does_not_block),
        TEST(a_full_socket_does_not_block),      TEST(keeping_has_a_bound),
        TEST(a_burst_keeps_its_order),           TEST(a_burst_counts_what_it_drops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
