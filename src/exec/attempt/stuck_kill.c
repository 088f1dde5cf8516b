/*
 * Repeats a KILL after which something still lives.
 */
#include "exec/attempt/stuck_kill.h"

#include "base/clock.h"

#define FIRST_NS CLOCK_NS_PER_S /* between the first two KILLs */
#define LONGEST_NS (60 * CLOCK_NS_PER_S)
#define TOLD_NS (2 * CLOCK_NS_PER_S) /* large or busy processes take a moment to die */

void stuck_kill_begin(struct stuck_kill *stuck_kill)
{
    stuck_kill->since_ns = clock_boot_ns();
    stuck_kill->next_ns = stuck_kill->since_ns + FIRST_NS;
}

bool stuck_kill_look(struct stuck_kill *stuck_kill, struct process_tree *tree, bool is_led)
{
    int64_t now_ns = clock_boot_ns(), since_ns = now_ns - stuck_kill->since_ns;
    if (now_ns < stuck_kill->next_ns) {
        return false;
    }
    process_tree_kill_again(tree, is_led);
    /* the time since the first KILL doubles each time */
    stuck_kill->next_ns = now_ns + (since_ns < LONGEST_NS ? since_ns : LONGEST_NS);
    bool tells = !stuck_kill->told && since_ns >= TOLD_NS;
    stuck_kill->told |= tells;
    return tells;
}

double stuck_kill_wait_s(const struct stuck_kill *stuck_kill)
{
    return (double)(stuck_kill->next_ns - clock_boot_ns()) / (double)CLOCK_NS_PER_S;
}
