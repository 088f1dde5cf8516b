/* The verdict on an attempt, when everything about its end is known. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/attempt/child.h"

/* The cause of an attempt with this end, in a config with a rule for 3. */
static enum cause judged(enum cause cause, int code, int64_t oom_kills, const char *command,
                         bool reported)
{
    struct config config = {.task.command = (char *)command};
    struct child_host host = {.config = &config};
    struct child child = {
        .host = &host,
        .count = 1,
        .attempt = {.ending = {.cause = cause, .exit_code = code},
                    .usage = {.items = {[USAGE_OOM_KILLS] = oom_kills}},
                    .has_verdict = reported,
                    .verdict = VERDICT_SUCCESS,
                    .verdict_code = -1},
    };
    config.retry.exits.of[3].kind = CONFIG_RULE_SUCCESS;
    judge_end(&child);
    return child.attempt.ending.cause;
}

/* Goal: an attempt that failed by itself, in whatever way, while the kernel killed processes of
 * it, was out of memory; but not one that succeeded, was killed by leat, or reported its own
 * outcome. */
static void want_of_memory_is_a_cause(void **state)
{
    (void)state;
    for (int64_t kills = -1; kills < 3; kills++) {
        bool known = kills > 0;
        assert_int_equal(judged(CAUSE_EXIT, 137, kills, NULL, false),
                         known ? CAUSE_OOM : CAUSE_EXIT);
        assert_int_equal(judged(CAUSE_SIGNAL, 0, kills, NULL, false),
                         known ? CAUSE_OOM : CAUSE_SIGNAL);
        assert_int_equal(judged(CAUSE_KILLED, 0, kills, NULL, false),
                         known ? CAUSE_OOM : CAUSE_KILLED);
        assert_int_equal(judged(CAUSE_EXIT, 127, kills, "command", false),
                         known ? CAUSE_OOM : CAUSE_HOST);
        assert_int_equal(judged(CAUSE_EXIT, 0, kills, NULL, false), CAUSE_EXIT);
        assert_int_equal(judged(CAUSE_EXIT, 3, kills, NULL, false), CAUSE_EXIT);
        assert_int_equal(judged(CAUSE_TIMEOUT, 0, kills, NULL, false), CAUSE_TIMEOUT);
        assert_int_equal(judged(CAUSE_LEASE_LOST, 0, kills, NULL, false), CAUSE_LEASE_LOST);
        assert_int_equal(judged(CAUSE_CANCELLED, 0, kills, NULL, false), CAUSE_CANCELLED);
        assert_int_equal(judged(CAUSE_KILLED, 0, kills, NULL, true), CAUSE_REPORTED);
    }
}

/* Goal: 126 and 127 are host faults for a configured program, and no other codes are; for a
 * task's own command they are the task's. */
static void programs_that_cannot_run(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        bool host = code == 126 || code == 127;
        assert_int_equal(judged(CAUSE_EXIT, code, 0, "command", false),
                         host ? CAUSE_HOST : CAUSE_EXIT);
        assert_int_equal(judged(CAUSE_EXIT, code, 0, NULL, false), CAUSE_EXIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(want_of_memory_is_a_cause),
        cmocka_unit_test(programs_that_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
