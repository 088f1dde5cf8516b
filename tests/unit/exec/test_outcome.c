/* The outcome of a task after an attempt: verdicts, backoff and texts. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "exec/job/outcome.h"

static struct config_retry plain_policy(void)
{
    struct config_retry policy = {.max_attempts = 3,
                                  .base_ms = 2000,
                                  .factor = 2,
                                  .cap_ms = 60000,
                                  .jitter = CONFIG_JITTER_NONE,
                                  .cannot_execute = {CONFIG_RULE_DEAD, 0}};
    policy.exits.of[64].kind = policy.exits.of[255].kind = CONFIG_RULE_DEAD;
    policy.exits.of[99].kind = CONFIG_RULE_SUCCESS;
    return policy;
}

static struct outcome decide(const struct config_retry *policy, enum cause cause, int code,
                             int64_t attempt)
{
    struct ending ending = {.cause = cause, .exit_code = code, .attempt = attempt};
    return outcome_decide(policy, &ending, 0.5);
}

/* Goal: each exit code 0-255 is success, permanent or a retry, as the policy says. */
static void exit_codes_are_judged(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    for (int code = 0; code < 256; code++) {
        enum verdict expected = code == 0 || code == 99     ? VERDICT_SUCCESS
                                : code == 64 || code == 255 ? VERDICT_DEAD
                                                            : VERDICT_RETRY;
        assert_int_equal(decide(&policy, CAUSE_EXIT, code, 1).verdict, expected);
    }
}

/* Goal: 0 is success with any policy. */
static void zero_is_always_success(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    policy.exit.kind = policy.exits.of[0].kind = CONFIG_RULE_DEAD;
    assert_int_equal(decide(&policy, CAUSE_EXIT, 0, 3).verdict, VERDICT_SUCCESS);
}

/* Goal: every cause has its verdict, before and at the last attempt. */
static void causes_are_judged(void **state)
{
    (void)state;
    static const struct {
        enum cause cause;
        enum verdict before, last;
    } table[] = {
        {CAUSE_EXIT, VERDICT_RETRY, VERDICT_DEAD},
        {CAUSE_SIGNAL, VERDICT_RETRY, VERDICT_DEAD},
        {CAUSE_KILLED, VERDICT_RETRY, VERDICT_DEAD},
        {CAUSE_OOM, VERDICT_RETRY, VERDICT_DEAD},
        {CAUSE_OUTPUT_LIMIT, VERDICT_RETRY, VERDICT_DEAD},
        {CAUSE_CANNOT_EXECUTE, VERDICT_DEAD, VERDICT_DEAD},
        {CAUSE_TIMEOUT, VERDICT_RETRY, VERDICT_DEAD},
        {CAUSE_CHECK, VERDICT_RETRY, VERDICT_DEAD},
        {CAUSE_DONE, VERDICT_SUCCESS, VERDICT_SUCCESS},
        {CAUSE_REFUSED, VERDICT_DEAD, VERDICT_DEAD},
        {CAUSE_HOST, VERDICT_RELEASE, VERDICT_RELEASE},
        {CAUSE_NO_PROGRAM, VERDICT_RELEASE, VERDICT_RELEASE},
        {CAUSE_LEASE_LOST, VERDICT_RELEASE, VERDICT_RELEASE},
        {CAUSE_SHUTDOWN, VERDICT_RELEASE, VERDICT_RELEASE},
        {CAUSE_CANCELLED, VERDICT_CANCELLED, VERDICT_CANCELLED},
    };
    struct config_retry policy = plain_policy();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(decide(&policy, table[i].cause, 1, 1).verdict, table[i].before);
        assert_int_equal(decide(&policy, table[i].cause, 1, 2).verdict, table[i].before);
        assert_int_equal(decide(&policy, table[i].cause, 1, 3).verdict, table[i].last);
        assert_int_equal(decide(&policy, table[i].cause, 1, 4).verdict, table[i].last);
    }
}

/* The rule for that cause, or NULL. */
static struct config_rule *rule_for(struct config_retry *policy, enum cause cause)
{
    switch (cause) {
    case CAUSE_EXIT:
        return &policy->exit;
    case CAUSE_SIGNAL:
        return &policy->signal;
    case CAUSE_KILLED:
        return &policy->killed;
    case CAUSE_OOM:
        return &policy->oom;
    case CAUSE_TIMEOUT:
        return &policy->timeout;
    case CAUSE_OUTPUT_LIMIT:
        return &policy->output_limit;
    case CAUSE_CANNOT_EXECUTE:
        return &policy->cannot_execute;
    case CAUSE_CHECK:
        return &policy->check;
    default:
        return NULL;
    }
}

static enum verdict expected_by(struct config_rule rule, int64_t own, int64_t attempt, bool shared)
{
    int64_t most = rule.most > 0 ? rule.most : 3;
    if (own > 0 && (rule.most == 0 || own < most)) {
        most = own;
    }
    return rule.kind == CONFIG_RULE_SUCCESS                                ? VERDICT_SUCCESS
           : !shared && (rule.kind == CONFIG_RULE_DEAD || attempt >= most) ? VERDICT_DEAD
                                                                           : VERDICT_RETRY;
}

/* Goal: the whole table is right: each cause, with each rule for it, the task's own number of
 * attempts below and above the rule's, each attempt, alone and shared; and no cause follows
 * another's rule. */
static void rules_are_followed(void **state)
{
    (void)state;
    static const struct config_rule rules[] = {
        {CONFIG_RULE_NONE, 0},  {CONFIG_RULE_RETRY, 0}, {CONFIG_RULE_RETRY, 1},
        {CONFIG_RULE_RETRY, 5}, {CONFIG_RULE_DEAD, 0},  {CONFIG_RULE_SUCCESS, 0},
    };
    static const int64_t owns[] = {0, 1, 4, 9};
    for (enum cause cause = CAUSE_EXIT; cause <= CAUSE_CANCELLED; cause++) {
        for (size_t at = 0; at < sizeof rules / sizeof *rules; at++) {
            for (int all = 0; all < 4 * 10 * 2; all++) {
                struct ending ending = {.cause = cause,
                                        .exit_code = 1,
                                        .signal = SIGTERM,
                                        .max_attempts = owns[all % 4],
                                        .attempt = all / 4 % 10 + 1,
                                        .shared = all / 40 > 0};
                struct config_retry policy = plain_policy(), plain = policy;
                struct config_rule *rule = rule_for(&policy, cause);
                if (rule) {
                    *rule = rules[at];
                    assert_int_equal(
                        outcome_decide(&policy, &ending, 0.5).verdict,
                        expected_by(rules[at], ending.max_attempts, ending.attempt, ending.shared));
                }
                /* the rules of all other causes change nothing */
                for (enum cause other = CAUSE_EXIT; other <= CAUSE_CANCELLED; other++) {
                    struct config_rule *foreign = rule_for(&policy, other);
                    if (foreign && other != cause) {
                        *foreign = rules[at];
                    }
                }
                if (rule) {
                    *rule = *rule_for(&plain, cause);
                }
                assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict,
                                 outcome_decide(&plain, &ending, 0.5).verdict);
            }
        }
    }
}

/* Goal: the own rule of a code or signal overrides the one for all others; invalid numbers have
 * the one for all. */
static void own_rules_go_first(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    policy.exit = policy.signal = (struct config_rule){CONFIG_RULE_DEAD, 0};
    policy.exits.of[75] = policy.signals.of[SIGTERM] = (struct config_rule){CONFIG_RULE_RETRY, 20};
    for (int number = -1; number < 300; number++) {
        struct ending ending = {.cause = CAUSE_EXIT, .exit_code = number, .attempt = 19};
        bool well = number == 0 || number == 99;
        assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict, well ? VERDICT_SUCCESS
                                                                        : number == 75
                                                                            ? VERDICT_RETRY
                                                                            : VERDICT_DEAD);
        ending.cause = CAUSE_SIGNAL;
        ending.signal = number;
        assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict,
                         number == SIGTERM ? VERDICT_RETRY : VERDICT_DEAD);
    }
    struct ending ending = {.cause = CAUSE_EXIT, .exit_code = 75, .attempt = 20};
    assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict, VERDICT_DEAD);
}

/* Goal: an attempt that failed by itself, and of which a process was OOM-killed, was out of
 * memory. */
static void want_of_memory_is_known(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    for (enum cause cause = CAUSE_EXIT; cause <= CAUSE_CANCELLED; cause++) {
        bool own = cause == CAUSE_EXIT || cause == CAUSE_SIGNAL || cause == CAUSE_KILLED;
        for (int64_t kills = -1; kills < 3; kills++) {
            struct ending ending = {.cause = cause, .exit_code = 2};
            assert_int_equal(ending_lacked_memory(&policy, &ending, kills), own && kills > 0);
        }
    }
    struct ending well = {.cause = CAUSE_EXIT};
    assert_false(ending_lacked_memory(&policy, &well, 1));
    well.exit_code = 99;
    assert_false(ending_lacked_memory(&policy, &well, 1));
}

/* Goal: any failure of a shared process leads to an own attempt for each task, with any code and
 * number of attempts; its success counts. */
static void shared_failures_lead_to_own_attempts(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    policy.max_attempts = 1;
    for (int code = 0; code < 256; code++) {
        struct ending ending = {
            .cause = CAUSE_EXIT, .exit_code = code, .attempt = 1, .shared = true};
        assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict,
                         code == 0 || code == 99 ? VERDICT_SUCCESS : VERDICT_RETRY);
    }
    struct ending ending = {.cause = CAUSE_TIMEOUT, .attempt = 1, .shared = true};
    assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict, VERDICT_RETRY);
    ending.cause = CAUSE_BATCH;
    assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict, VERDICT_RELEASE);
}

/* Goal: the report of a process decides; a retry follows the policy. */
static void reports_are_followed(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    for (int shared = 0; shared < 2; shared++) {
        struct ending ending = {.cause = CAUSE_REPORTED,
                                .exit_code = 64,
                                .attempt = 1,
                                .shared = shared,
                                .reported = VERDICT_SUCCESS};
        assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict, VERDICT_SUCCESS);
        ending.reported = VERDICT_DEAD;
        assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict, VERDICT_DEAD);
        ending.reported = VERDICT_RETRY;
        assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict, VERDICT_RETRY);
        assert_int_equal(outcome_decide(&policy, &ending, 0.5).delay_ms, 2000);
        ending.attempt = 3;
        assert_int_equal(outcome_decide(&policy, &ending, 0.5).verdict, VERDICT_DEAD);
    }
}

/* Goal: a task's own number of attempts overrides the policy's, both ways. */
static void own_attempts_count(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    struct ending ending = {.cause = CAUSE_SIGNAL, .attempt = 1, .max_attempts = 1};
    assert_int_equal(outcome_decide(&policy, &ending, 0).verdict, VERDICT_DEAD);
    ending.attempt = 9;
    ending.max_attempts = 10;
    assert_int_equal(outcome_decide(&policy, &ending, 0).verdict, VERDICT_RETRY);
    ending.attempt = 10;
    assert_int_equal(outcome_decide(&policy, &ending, 0).verdict, VERDICT_DEAD);
}

/* Goal: the pause is base times factor to the power of earlier attempts, up to the cap, without
 * overflow. */
static void waits_grow_to_the_cap(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    policy.max_attempts = INT64_MAX;
    assert_int_equal(decide(&policy, CAUSE_EXIT, 1, 1).delay_ms, 2000);
    assert_int_equal(decide(&policy, CAUSE_EXIT, 1, 2).delay_ms, 4000);
    assert_int_equal(decide(&policy, CAUSE_EXIT, 1, 5).delay_ms, 32000);
    assert_int_equal(decide(&policy, CAUSE_EXIT, 1, 6).delay_ms, 60000);
    assert_int_equal(decide(&policy, CAUSE_EXIT, 1, 100000).delay_ms, 60000);
    policy.factor = 1;
    assert_int_equal(decide(&policy, CAUSE_EXIT, 1, 100000).delay_ms, 2000);
}

/* Goal: full jitter takes the random share; a pause is at least 1 ms and never longer than the
 * whole. */
static void jitter_takes_a_share(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    struct ending ending = {.cause = CAUSE_EXIT, .exit_code = 1, .attempt = 2};
    policy.jitter = CONFIG_JITTER_FULL;
    assert_int_equal(outcome_decide(&policy, &ending, 0).delay_ms, 1);
    assert_int_equal(outcome_decide(&policy, &ending, 0.25).delay_ms, 1000);
    assert_in_range(outcome_decide(&policy, &ending, 0.999999999).delay_ms, 3999, 4000);
    policy.base_ms = 0;
    assert_int_equal(outcome_decide(&policy, &ending, 0.5).delay_ms, 1);
}

/* Goal: a task whose program is missing waits; other releases do not. */
static void missing_programs_are_waited_for(void **state)
{
    (void)state;
    struct config_retry policy = plain_policy();
    struct ending ending = {.cause = CAUSE_NO_PROGRAM, .attempt = 1};
    assert_int_equal(outcome_decide(&policy, &ending, 0).delay_ms, 500);
    assert_in_range(outcome_decide(&policy, &ending, 0.999999).delay_ms, 999, 1000);
    ending.cause = CAUSE_HOST;
    assert_int_equal(outcome_decide(&policy, &ending, 0).delay_ms, 0);
}

static void assert_text(struct ending ending, const char *expected)
{
    char text[48];
    ending_describe(&ending, text, sizeof text);
    assert_string_equal(text, expected);
}

/* Goal: the text of an end says what happened. */
static void endings_have_texts(void **state)
{
    (void)state;
    assert_text((struct ending){.cause = CAUSE_EXIT, .exit_code = 3}, "exit 3");
    assert_text((struct ending){.cause = CAUSE_SIGNAL, .signal = SIGSEGV}, "SIGSEGV");
    assert_text((struct ending){.cause = CAUSE_SIGNAL, .signal = 40}, "SIG40");
    assert_text((struct ending){.cause = CAUSE_KILLED, .signal = SIGKILL}, "killed by SIGKILL");
    assert_text((struct ending){.cause = CAUSE_OOM, .signal = SIGKILL}, "out of memory, SIGKILL");
    assert_text((struct ending){.cause = CAUSE_OOM, .exit_code = 137}, "out of memory, exit 137");
    assert_text((struct ending){.cause = CAUSE_OUTPUT_LIMIT, .signal = SIGTERM}, "too much output");
    assert_text((struct ending){.cause = CAUSE_CANNOT_EXECUTE}, "cannot-execute");
    assert_text((struct ending){.cause = CAUSE_TIMEOUT, .signal = SIGTERM}, "timeout");
    assert_text((struct ending){.cause = CAUSE_LEASE_LOST}, "lease-lost");
    assert_text((struct ending){.cause = CAUSE_HOST}, "host");
    assert_text((struct ending){.cause = CAUSE_NO_PROGRAM}, "no-program");
    assert_text((struct ending){.cause = CAUSE_REFUSED}, "refused");
    assert_text((struct ending){.cause = CAUSE_SHUTDOWN}, "shutdown");
    assert_text((struct ending){.cause = CAUSE_BATCH}, "batch");
    assert_text((struct ending){.cause = CAUSE_CHECK}, "check");
    assert_text((struct ending){.cause = CAUSE_DONE}, "the check says it is done");
    assert_text((struct ending){.cause = CAUSE_NO_VERDICT}, "no verdict");
    assert_text((struct ending){.cause = CAUSE_REPORTED, .reported = VERDICT_SUCCESS},
                "reported ok");
    assert_text((struct ending){.cause = CAUSE_REPORTED, .reported = VERDICT_RETRY},
                "reported retry");
    assert_text((struct ending){.cause = CAUSE_REPORTED, .reported = VERDICT_DEAD},
                "reported dead");
}

static void assert_status(struct ending ending, const char *expected)
{
    char text[UNITS_INTEGER_SIZE];
    ending_status(&ending, text, sizeof text);
    assert_string_equal(text, expected);
}

/* Goal: beside its cause an end has the exit status or signal if the process's own end is the
 * cause, and otherwise nothing. */
static void endings_have_a_status(void **state)
{
    (void)state;
    for (enum cause cause = CAUSE_EXIT; cause <= CAUSE_CANCELLED; cause++) {
        bool own = cause == CAUSE_EXIT || cause == CAUSE_SIGNAL || cause == CAUSE_KILLED ||
                   cause == CAUSE_OOM;
        assert_status((struct ending){.cause = cause, .exit_code = 255}, own ? "255" : "");
        assert_status((struct ending){.cause = cause, .signal = SIGKILL}, own ? "SIGKILL" : "");
        assert_status((struct ending){.cause = cause, .signal = 64}, own ? "SIG64" : "");
    }
}

/* Goal: all causes have different names. */
static void causes_have_names(void **state)
{
    (void)state;
    for (enum cause one = CAUSE_EXIT; one <= CAUSE_CANCELLED; one++) {
        assert_string_not_equal(cause_name(one), "unknown");
        for (enum cause other = CAUSE_EXIT; other < one; other++) {
            assert_string_not_equal(cause_name(one), cause_name(other));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_are_judged),
        cmocka_unit_test(zero_is_always_success),
        cmocka_unit_test(causes_are_judged),
        cmocka_unit_test(rules_are_followed),
        cmocka_unit_test(own_rules_go_first),
        cmocka_unit_test(want_of_memory_is_known),
        cmocka_unit_test(reports_are_followed),
        cmocka_unit_test(shared_failures_lead_to_own_attempts),
        cmocka_unit_test(own_attempts_count),
        cmocka_unit_test(waits_grow_to_the_cap),
        cmocka_unit_test(jitter_takes_a_share),
        cmocka_unit_test(missing_programs_are_waited_for),
        cmocka_unit_test(endings_have_texts),
        cmocka_unit_test(endings_have_a_status),
        cmocka_unit_test(causes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
