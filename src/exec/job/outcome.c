/*
 * The policy of retries: rules, backoff, and the text that describes an end.
 */
#include "exec/job/outcome.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "exec/job/retry_delay.h"

const char *cause_name(enum cause cause)
{
    static const char *const names[] = {
        [CAUSE_EXIT] = "exit",
        [CAUSE_SIGNAL] = "signal",
        [CAUSE_KILLED] = "killed",
        [CAUSE_OOM] = "oom",
        [CAUSE_TIMEOUT] = "timeout",
        [CAUSE_OUTPUT_LIMIT] = "output-limit",
        [CAUSE_CANNOT_EXECUTE] = "cannot-execute",
        [CAUSE_REFUSED] = "refused",
        [CAUSE_HOST] = "host",
        [CAUSE_NO_PROGRAM] = "no-program",
        [CAUSE_LEASE_LOST] = "lease-lost",
        [CAUSE_SHUTDOWN] = "shutdown",
        [CAUSE_REPORTED] = "reported",
        [CAUSE_CHECK] = "check",
        [CAUSE_DONE] = "done",
        [CAUSE_BATCH] = "batch",
        [CAUSE_CANCELLED] = "cancelled",
        [CAUSE_NO_VERDICT] = "no-verdict",
    };
    return names[cause];
}

/* Returns after how many attempts the task is given up. A rule's number takes precedence over the
 * policy's; neither can exceed the task's own. */
static int64_t attempts_most(const struct config_retry *policy, const struct config_rule *rule,
                             const struct ending *ending)
{
    int64_t most = rule->most > 0 ? rule->most : policy->max_attempts;
    if (ending->max_attempts > 0 && (rule->most == 0 || ending->max_attempts < most)) {
        most = ending->max_attempts;
    }
    return most;
}

/* Applies a rule. A task that failed in a shared process always gets an attempt of its own. */
static struct outcome follow(const struct config_retry *policy, const struct config_rule *rule,
                             const struct ending *ending, double random)
{
    int64_t attempt = ending->attempt > 1 ? ending->attempt : 1;
    int64_t max_attempts = attempts_most(policy, rule, ending);
    bool shared = ending->shared && ending->cause != CAUSE_REPORTED;
    if (rule->kind == CONFIG_RULE_SUCCESS) {
        return (struct outcome){.verdict = VERDICT_SUCCESS};
    }
    if (!shared && (rule->kind == CONFIG_RULE_DEAD || attempt >= max_attempts)) {
        return (struct outcome){.verdict = VERDICT_DEAD, .max_attempts = max_attempts};
    }
    return (struct outcome){.verdict = VERDICT_RETRY,
                            .max_attempts = max_attempts,
                            .delay_ms = retry_delay_ms(policy, attempt, random)};
}

static const struct config_rule always_success = {CONFIG_RULE_SUCCESS, 0};
static const struct config_rule always_dead = {CONFIG_RULE_DEAD, 0};
static const struct config_rule plain_retry = {CONFIG_RULE_RETRY, 0};

static const struct config_rule *exit_rule(const struct config_retry *policy, int code)
{
    if (code == 0) {
        return &always_success;
    }
    bool own = code > 0 && code < CONFIG_CODES && policy->exits.of[code].kind != CONFIG_RULE_NONE;
    return own ? &policy->exits.of[code] : &policy->exit;
}

static const struct config_rule *signal_rule(const struct config_retry *policy, int signal)
{
    bool own = signal > 0 && signal < CONFIG_SIGNALS &&
               policy->signals.of[signal].kind != CONFIG_RULE_NONE;
    return own ? &policy->signals.of[signal] : &policy->signal;
}

static const struct config_rule *reported_rule(enum verdict reported)
{
    return reported == VERDICT_SUCCESS ? &always_success
           : reported == VERDICT_DEAD  ? &always_dead
                                       : &plain_retry;
}

/* Returns the rule, or NULL if the attempt does not count. */
static const struct config_rule *rule_of(const struct config_retry *policy,
                                         const struct ending *ending)
{
    const struct config_rule *const rules[CAUSE_NO_VERDICT + 1] = {
        [CAUSE_EXIT] = exit_rule(policy, ending->exit_code),
        [CAUSE_SIGNAL] = signal_rule(policy, ending->signal),
        [CAUSE_KILLED] = &policy->killed,
        [CAUSE_OOM] = &policy->oom,
        [CAUSE_TIMEOUT] = &policy->timeout,
        [CAUSE_OUTPUT_LIMIT] = &policy->output_limit,
        [CAUSE_CANNOT_EXECUTE] = &policy->cannot_execute,
        [CAUSE_CHECK] = &policy->check,
        [CAUSE_REPORTED] = reported_rule(ending->reported),
        [CAUSE_DONE] = &always_success,
        [CAUSE_REFUSED] = &always_dead,
        [CAUSE_NO_VERDICT] = &plain_retry,
    };
    return rules[ending->cause];
}

/* Returns the pause before the task is released, so that another host may have its program. */
static int64_t program_wait_ms(double random)
{
    enum { STEP_MS = 1000 }; /* leat_finish makes it longer each time */
    return (int64_t)(STEP_MS * (0.5 + random / 2));
}

struct outcome outcome_decide(const struct config_retry *policy, const struct ending *ending,
                              double random)
{
    const struct config_rule *rule = rule_of(policy, ending);
    if (rule) {
        return follow(policy, rule, ending, random);
    }
    if (ending->cause == CAUSE_NO_PROGRAM) {
        return (struct outcome){.verdict = VERDICT_RELEASE, .delay_ms = program_wait_ms(random)};
    }
    return (struct outcome){.verdict = ending->cause == CAUSE_CANCELLED ? VERDICT_CANCELLED
                                                                        : VERDICT_RELEASE};
}

bool ending_is_decided(const struct ending *ending)
{
    return ending->cause == CAUSE_TIMEOUT || ending->cause == CAUSE_CANCELLED ||
           ending->cause == CAUSE_LEASE_LOST || ending->cause == CAUSE_OUTPUT_LIMIT;
}

bool ending_lacked_memory(const struct config_retry *policy, const struct ending *ending,
                          int64_t oom_kills)
{
    bool own = ending->cause == CAUSE_EXIT || ending->cause == CAUSE_SIGNAL ||
               ending->cause == CAUSE_KILLED;
    return own && oom_kills > 0 && rule_of(policy, ending)->kind != CONFIG_RULE_SUCCESS;
}

/* "SIGTERM", "SIG40" */
static void describe_signal(int signal, char *text, size_t size)
{
    const char *abbreviation = sigabbrev_np(signal);
    if (abbreviation) {
        (void)snprintf(text, size, "SIG%s", abbreviation);
    } else {
        (void)snprintf(text, size, "SIG%d", signal);
    }
}

/* "SIGTERM", "exit 3" */
static void describe_end(const struct ending *ending, char *text, size_t size)
{
    if (ending->signal) {
        describe_signal(ending->signal, text, size);
    } else {
        (void)snprintf(text, size, "exit %d", ending->exit_code);
    }
}

void ending_describe(const struct ending *ending, char *text, size_t size)
{
    char how[24];
    switch (ending->cause) {
    case CAUSE_EXIT:
    case CAUSE_SIGNAL:
        describe_end(ending, text, size);
        return;
    case CAUSE_KILLED:
        describe_end(ending, how, sizeof how);
        (void)snprintf(text, size, "killed by %s", how);
        return;
    case CAUSE_OOM:
        describe_end(ending, how, sizeof how);
        (void)snprintf(text, size, "out of memory, %s", how);
        return;
    case CAUSE_REPORTED:
        (void)snprintf(text, size, "reported %s", verdict_report_name(ending->reported));
        return;
    case CAUSE_DONE:
        (void)snprintf(text, size, "the check says it is done");
        return;
    case CAUSE_OUTPUT_LIMIT:
        (void)snprintf(text, size, "too much output");
        return;
    case CAUSE_NO_VERDICT:
        (void)snprintf(text, size, "no verdict");
        return;
    case CAUSE_CANNOT_EXECUTE:
    case CAUSE_TIMEOUT:
    case CAUSE_REFUSED:
    case CAUSE_HOST:
    case CAUSE_NO_PROGRAM:
    case CAUSE_LEASE_LOST:
    case CAUSE_SHUTDOWN:
    case CAUSE_CHECK:
    case CAUSE_BATCH:
    case CAUSE_CANCELLED:
        break;
    }
    (void)snprintf(text, size, "%s", cause_name(ending->cause));
}

void ending_status(const struct ending *ending, char *text, size_t size)
{
    text[0] = '\0';
    bool told = ending->cause == CAUSE_EXIT || ending->cause == CAUSE_SIGNAL ||
                ending->cause == CAUSE_KILLED || ending->cause == CAUSE_OOM;
    if (told && ending->signal) {
        describe_signal(ending->signal, text, size);
    } else if (told) {
        units_format_integer(ending->exit_code, text);
    }
}
