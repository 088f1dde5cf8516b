/*
 * Repeats and reports a KILL after which something still lives.
 */
#include "exec/attempt/stuck_kill.h"

#include "base/clock.h"

#define FIRST_NS CLOCK_NS_PER_S /* between the first two KILLs */
#define LONGEST_NS (60 * CLOCK_NS_PER_S)
#define TOLD_NS (2 * CLOCK_NS_PER_S) /* large or busy processes take a moment to die */

void stuck_kill_begin(struct child *child)
{
    int64_t now_ns = clock_boot_ns();
    child->stuck_kill.since_ns = now_ns;
    child->stuck_kill.next_ns = now_ns + FIRST_NS;
}

bool stuck_kill_has_begun(const struct child *child)
{
    return child->stuck_kill.since_ns > 0;
}

static void tell(struct child *child, bool is_led)
{
    struct child_host *host = child->host;
    child->stuck_kill.told = true;
    if (host->stuck) {
        host->stuck(host->stuck_context, &child->attempt,
                    process_tree_survivor(&child->tree, is_led));
    }
}

double stuck_kill_look(struct child *child)
{
    struct stuck_kill *stuck_kill = &child->stuck_kill;
    int64_t now_ns = clock_boot_ns(), since_ns = now_ns - stuck_kill->since_ns;
    if (now_ns >= stuck_kill->next_ns) {
        bool is_led = child->attempt.state == JOB_KILLING;
        process_tree_kill_again(&child->tree, is_led);
        if (!stuck_kill->told && since_ns >= TOLD_NS) {
            tell(child, is_led);
        }
        /* the time since the first KILL doubles each time */
        stuck_kill->next_ns = now_ns + (since_ns < LONGEST_NS ? since_ns : LONGEST_NS);
    }
    return (double)(stuck_kill->next_ns - now_ns) / (double)CLOCK_NS_PER_S;
}
