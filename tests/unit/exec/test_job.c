/* The states of an attempt: the whole table of states and events, and the causes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/job/job.h"

#define STATES (JOB_DONE + 1)
#define EVENTS (JOB_VERDICT + 1)
#define CAUSES (CAUSE_NO_VERDICT + 1)

enum {
    TERM = JOB_SEND_TERM | JOB_START_GRACE,
    LAST = JOB_KILL_GROUP | JOB_START_SETTLE,
    KILL = JOB_SEND_KILL,
    TELL = JOB_REPORT,
    RUN = JOB_RUN,
};

/* In the order of the events: check started, to run, started, start failed, timed out, overflowed,
 * lease lost, stop, cancel, grace over, kill now, exited, quiet, settle over, mute, verdict. */
static const struct job_step table[STATES][EVENTS] = {
    [JOB_CLAIMED] = {{JOB_CHECKING, 0},
                     {JOB_CLAIMED, 0},
                     {JOB_RUNNING, 0},
                     {JOB_DONE, TELL},
                     {JOB_CLAIMED, 0},
                     {JOB_CLAIMED, 0},
                     {JOB_DONE, TELL},
                     {JOB_DONE, TELL},
                     {JOB_DONE, TELL},
                     {JOB_CLAIMED, 0},
                     {JOB_DONE, TELL},
                     {JOB_CLAIMED, 0},
                     {JOB_CLAIMED, 0},
                     {JOB_CLAIMED, 0},
                     {JOB_CLAIMED, 0},
                     {JOB_CLAIMED, 0}},
    [JOB_CHECKING] = {{JOB_CHECKING, 0},
                      {JOB_CHECKED, LAST},
                      {JOB_CHECKING, 0},
                      {JOB_CHECKING, 0},
                      {JOB_ENDING, TERM},
                      {JOB_ENDING, TERM},
                      {JOB_ENDING, TERM},
                      {JOB_ENDING, TERM},
                      {JOB_ENDING, TERM},
                      {JOB_CHECKING, 0},
                      {JOB_KILLING, KILL},
                      {JOB_SETTLING, LAST},
                      {JOB_CHECKING, 0},
                      {JOB_CHECKING, 0},
                      {JOB_ENDING, TERM},
                      {JOB_CHECKING, 0}},
    [JOB_CHECKED] = {{JOB_CHECKED, 0},
                     {JOB_CHECKED, 0},
                     {JOB_RUNNING, 0},
                     {JOB_DONE, TELL},
                     {JOB_CHECKED, 0},
                     {JOB_CHECKED, 0},
                     {JOB_SETTLING, 0},
                     {JOB_SETTLING, 0},
                     {JOB_SETTLING, 0},
                     {JOB_CHECKED, 0},
                     {JOB_SETTLING, 0},
                     {JOB_CHECKED, 0},
                     {JOB_CHECKED, RUN},
                     {JOB_CHECKED, RUN},
                     {JOB_CHECKED, 0},
                     {JOB_CHECKED, 0}},
    [JOB_RUNNING] = {{JOB_RUNNING, 0},
                     {JOB_RUNNING, 0},
                     {JOB_RUNNING, 0},
                     {JOB_RUNNING, 0},
                     {JOB_ENDING, TERM},
                     {JOB_ENDING, TERM},
                     {JOB_ENDING, TERM},
                     {JOB_ENDING, TERM},
                     {JOB_ENDING, TERM},
                     {JOB_RUNNING, 0},
                     {JOB_KILLING, KILL},
                     {JOB_SETTLING, LAST},
                     {JOB_RUNNING, 0},
                     {JOB_RUNNING, 0},
                     {JOB_ENDING, TERM},
                     {JOB_DONE, TELL}},
    [JOB_ENDING] = {{JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_KILLING, KILL},
                    {JOB_KILLING, KILL},
                    {JOB_SETTLING, LAST},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0},
                    {JOB_ENDING, 0}},
    [JOB_KILLING] = {{JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, KILL},
                     {JOB_SETTLING, LAST},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0},
                     {JOB_KILLING, 0}},
    [JOB_SETTLING] = {{JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0},
                      {JOB_DONE, TELL},
                      {JOB_DONE, TELL},
                      {JOB_SETTLING, 0},
                      {JOB_SETTLING, 0}},
    [JOB_DONE] = {{JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0},
                  {JOB_DONE, 0}},
};

/* Goal: every event in every state leads to the state of the table, with exactly its actions. */
static void every_step_is_as_designed(void **state)
{
    (void)state;
    for (enum job_state from = 0; from < STATES; from++) {
        for (enum job_event event = 0; event < EVENTS; event++) {
            struct job_step step = job_next(from, event);
            if (step.state != table[from][event].state ||
                step.actions != table[from][event].actions) {
                fail_msg("state %d, event %d: state %d, actions %#x", (int)from, (int)event,
                         (int)step.state, step.actions);
            }
        }
    }
}

/* Goal: in all sequences of six events, an attempt is reported at most once, never while a
 * process of it or of its check may live, which also ends before the task's own start; and it
 * never goes back. */
static void no_order_of_events_breaks_it(void **state)
{
    (void)state;
    enum { LENGTH = 6, ALL = EVENTS * EVENTS * EVENTS * EVENTS * EVENTS * EVENTS };
    for (int sequence = 0; sequence < ALL; sequence++) {
        enum job_state now = JOB_CLAIMED;
        int reports = 0, alive = 0;
        for (int rest = sequence, i = 0; i < LENGTH; i++, rest /= EVENTS) {
            struct job_step step = job_next(now, (enum job_event)(rest % EVENTS));
            assert_true(step.state >= now);
            if (step.state != now && (step.state == JOB_RUNNING || step.state == JOB_CHECKING)) {
                assert_int_equal(alive, 0);
                alive = 1;
            }
            now = step.state;
            /* after a verdict, the process that lives on is no longer that of the attempt */
            alive = alive && !(step.actions & JOB_KILL_GROUP) && rest % EVENTS != JOB_VERDICT;
            reports += (step.actions & JOB_REPORT) != 0;
            assert_true(!alive || !(step.actions & (JOB_REPORT | JOB_RUN)));
        }
        assert_int_equal(reports, now == JOB_DONE);
    }
}

/* The cause that an event sets if there is none yet. */
static enum cause expected_cause(enum job_state state, enum job_event event)
{
    int checks = state == JOB_CHECKING, waits = state == JOB_CLAIMED || state == JOB_CHECKED;
    int runs = state == JOB_RUNNING;
    switch (event) {
    case JOB_START_FAILED:
        return waits ? CAUSE_HOST : CAUSE_EXIT;
    case JOB_TIMED_OUT:
        return runs ? CAUSE_TIMEOUT : checks ? CAUSE_CHECK : CAUSE_EXIT;
    case JOB_OVERFLOWED:
        return runs ? CAUSE_OUTPUT_LIMIT : checks ? CAUSE_CHECK : CAUSE_EXIT;
    case JOB_LEASE_LOST:
    case JOB_KILL_NOW:
        return waits || checks || runs ? CAUSE_LEASE_LOST : CAUSE_EXIT;
    case JOB_STOP:
        return waits || checks || runs ? CAUSE_SHUTDOWN : CAUSE_EXIT;
    case JOB_CANCEL:
        return waits || checks || runs ? CAUSE_CANCELLED : CAUSE_EXIT;
    case JOB_MUTE:
        return runs ? CAUSE_NO_VERDICT : CAUSE_EXIT;
    case JOB_CHECK_STARTED:
    case JOB_TO_RUN:
    case JOB_STARTED:
    case JOB_GRACE_OVER:
    case JOB_EXITED:
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
    case JOB_VERDICT:
        break;
    }
    return CAUSE_EXIT;
}

/* Goal: an attempt without an order to end is described by its state. */
static void what_is_under_way(void **state)
{
    (void)state;
    for (enum job_state now = 0; now < STATES; now++) {
        bool expected = now == JOB_CHECKING || now == JOB_CHECKED || now == JOB_RUNNING;
        assert_int_equal(job_is_under_way(now), expected);
    }
}

/* Goal: the first reason stays in every state and for every event; an attempt that has exited or
 * was ordered to end gets no new one. */
static void first_reason_wins(void **state)
{
    (void)state;
    for (enum job_state now = 0; now < STATES; now++) {
        for (enum job_event event = 0; event < EVENTS; event++) {
            assert_int_equal(job_cause(now, event, CAUSE_EXIT), expected_cause(now, event));
            for (enum cause cause = CAUSE_EXIT + 1; cause < CAUSES; cause++) {
                assert_int_equal(job_cause(now, event, cause), cause);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_is_as_designed),
        cmocka_unit_test(no_order_of_events_breaks_it),
        cmocka_unit_test(what_is_under_way),
        cmocka_unit_test(first_reason_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
