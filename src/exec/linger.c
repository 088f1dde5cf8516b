#include "exec/linger.h"

#include "base/clock.h"
#include "exec/child.h"

#define FIRST_NS CLOCK_NS_PER_S /* the second KILL after the first */
#define LONGEST_NS (60 * CLOCK_NS_PER_S)
#define TOLD_NS (2 * CLOCK_NS_PER_S) /* what is large or busy takes a moment to end */

void linger_begin(struct child *child)
{
    int64_t now_ns = clock_boot_ns();
    child->linger.since_ns = now_ns;
    child->linger.next_ns = now_ns + FIRST_NS;
}

bool linger_has_begun(const struct child *child)
{
    return child->linger.since_ns > 0;
}

static void tell(struct child *child, bool is_led)
{
    struct child_host *host = child->host;
    child->linger.told = true;
    if (host->lingers) {
        host->lingers(host->lingers_context, &child->attempt,
                      family_survivor(&child->family, is_led));
    }
}

double linger_look(struct child *child)
{
    struct linger *linger = &child->linger;
    int64_t now_ns = clock_boot_ns(), since_ns = now_ns - linger->since_ns;
    if (now_ns >= linger->next_ns) {
        bool is_led = child->attempt.state == JOB_KILLING;
        family_kill_again(&child->family, is_led);
        if (!linger->told && since_ns >= TOLD_NS) {
            tell(child, is_led);
        }
        /* twice as long as so far, all in all */
        linger->next_ns = now_ns + (since_ns < LONGEST_NS ? since_ns : LONGEST_NS);
    }
    return (double)(linger->next_ns - now_ns) / (double)CLOCK_NS_PER_S;
}
