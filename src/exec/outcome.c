#include "exec/outcome.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *cause_name(enum cause cause)
{
    switch (cause) {
    case CAUSE_EXIT:
        return "exit";
    case CAUSE_SIGNAL:
        return "signal";
    case CAUSE_KILLED:
        return "killed";
    case CAUSE_OOM:
        return "oom";
    case CAUSE_TIMEOUT:
        return "timeout";
    case CAUSE_OUTPUT_LIMIT:
        return "output-limit";
    case CAUSE_CANNOT_EXECUTE:
        return "cannot-execute";
    case CAUSE_REFUSED:
        return "refused";
    case CAUSE_HOST:
        return "host";
    case CAUSE_LEASE_LOST:
        return "lease-lost";
    case CAUSE_SHUTDOWN:
        return "shutdown";
    case CAUSE_REPORTED:
        return "reported";
    case CAUSE_CHECK:
        return "check";
    case CAUSE_DONE:
        return "done";
    case CAUSE_BATCH:
        return "batch";
    case CAUSE_CANCELLED:
        return "cancelled";
    }
    return "unknown";
}

/* The wait before the next attempt. At least 1 ms, so that it is a wait and never "at once". */
static int64_t backoff_ms(const struct config_retry *policy, int64_t attempt, double random)
{
    /* doubles cannot overflow here: a power that is too large becomes infinite, and is capped */
    double cap = (double)policy->cap_ms;
    double delay = (double)policy->base_ms * pow(policy->factor, (double)(attempt - 1));
    if (!(delay < cap)) {
        delay = cap;
    }

    if (policy->jitter == CONFIG_JITTER_FULL) {
        delay *= random;
    }
    return delay < 1 ? 1 : (int64_t)delay;
}

/* One that failed with others gets an attempt of its own in any case. */
static struct outcome retry_or_dead(const struct config_retry *policy, const struct ending *ending,
                                    double random)
{
    int64_t attempt = ending->attempt > 1 ? ending->attempt : 1;
    int64_t max = ending->max_attempts > 0 ? ending->max_attempts : policy->max_attempts;
    bool shared = ending->shared && ending->cause != CAUSE_REPORTED;
    if (attempt >= max && !shared) {
        return (struct outcome){.verdict = VERDICT_DEAD};
    }
    return (struct outcome){.verdict = VERDICT_RETRY,
                            .delay_ms = backoff_ms(policy, attempt, random)};
}

struct outcome outcome_decide(const struct config_retry *policy, const struct ending *ending,
                              double random)
{
    switch (ending->cause) {
    case CAUSE_EXIT:
        if (ending->exit_code == 0 || config_codes_has(&policy->success, ending->exit_code)) {
            return (struct outcome){.verdict = VERDICT_SUCCESS};
        }
        if (config_codes_has(&policy->permanent, ending->exit_code) && !ending->shared) {
            return (struct outcome){.verdict = VERDICT_DEAD};
        }
        return retry_or_dead(policy, ending, random);
    case CAUSE_SIGNAL:
    case CAUSE_KILLED:
    case CAUSE_OOM:
    case CAUSE_TIMEOUT:
    case CAUSE_OUTPUT_LIMIT:
    case CAUSE_CHECK:
        return retry_or_dead(policy, ending, random);
    case CAUSE_DONE:
        return (struct outcome){.verdict = VERDICT_SUCCESS};
    case CAUSE_CANNOT_EXECUTE:
    case CAUSE_REFUSED:
        return (struct outcome){.verdict = VERDICT_DEAD};
    case CAUSE_REPORTED:
        return ending->reported == VERDICT_RETRY ? retry_or_dead(policy, ending, random)
                                                 : (struct outcome){.verdict = ending->reported};
    case CAUSE_CANCELLED:
        return (struct outcome){.verdict = VERDICT_CANCELLED};
    case CAUSE_HOST:
    case CAUSE_LEASE_LOST:
    case CAUSE_SHUTDOWN:
    case CAUSE_BATCH:
        break;
    }
    return (struct outcome){.verdict = VERDICT_RELEASE};
}

/* "SIGTERM", "SIG40" */
static void describe_signal(int signal, char *text, size_t size)
{
    const char *abbreviation = sigabbrev_np(signal);
    if (abbreviation) {
        (void)snprintf(text, size, "SIG%s", abbreviation); /* each fits */
    } else {
        (void)snprintf(text, size, "SIG%d", signal);
    }
}

void ending_describe(const struct ending *ending, char *text, size_t size)
{
    /* a text that is cut is still one for people */
    char how[24];
    if (ending->signal) {
        describe_signal(ending->signal, how, sizeof how);
    } else {
        (void)snprintf(how, sizeof how, "exit %d", ending->exit_code);
    }
    switch (ending->cause) {
    case CAUSE_EXIT:
    case CAUSE_SIGNAL:
        (void)snprintf(text, size, "%s", how);
        return;
    case CAUSE_KILLED:
        (void)snprintf(text, size, "killed by %s", how);
        return;
    case CAUSE_OOM:
        (void)snprintf(text, size, "out of memory, %s", how);
        return;
    case CAUSE_REPORTED:
        (void)snprintf(text, size, "reported %s",
                       ending->reported == VERDICT_SUCCESS ? "ok"
                       : ending->reported == VERDICT_RETRY ? "retry"
                                                           : "dead");
        return;
    case CAUSE_DONE:
        (void)snprintf(text, size, "the check says it is done");
        return;
    case CAUSE_OUTPUT_LIMIT:
        (void)snprintf(text, size, "too much output");
        return;
    case CAUSE_CANNOT_EXECUTE:
    case CAUSE_TIMEOUT:
    case CAUSE_REFUSED:
    case CAUSE_HOST:
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
        (void)snprintf(text, size, "%d", ending->exit_code); /* fits */
    }
}
