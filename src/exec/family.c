#include "exec/family.h"

#include <signal.h>
#include <sys/prctl.h>

int family_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void family_begin(struct family *family, pid_t leader, struct cell *cell,
                  const struct group_orphans *orphans)
{
    *family = (struct family){.leader = leader, .cell = cell, .orphans = *orphans};
}

void family_term(const struct family *family)
{
    group_signal(family->leader, SIGTERM);
    group_signal(family->leader, SIGCONT);
}

void family_kill(struct family *family)
{
    group_signal(family->leader, SIGKILL);
    family->empty = family->cell && cell_is_empty(family->cell);
    if (family->cell && !family->empty) {
        cell_kill(family->cell);
    }
}

void family_kill_strays(struct family *family)
{
    if (!family->cell) {
        family->strays = group_kill_strays(family->leader, &family->orphans);
    }
}

void family_kill_again(struct family *family, bool is_led)
{
    if (is_led) {
        family_kill(family);
        family_kill_strays(family);
    } else if (family->cell) {
        cell_kill(family->cell); /* else there is nothing that could not be another's by now */
    }
}

pid_t family_survivor(const struct family *family, bool is_led)
{
    if (is_led) {
        return family->leader;
    }
    return family->cell ? cell_member(family->cell)
                        : group_survivor(family->leader, &family->orphans);
}

void family_was_killed(struct family *family)
{
    if (family->cell) {
        cell_doubt(family->cell);
    }
}

static bool is_gone(struct family *family, bool closely)
{
    if (family->cell) {
        return cell_is_empty(family->cell);
    }
    /* one that was killed may have left children that nobody has found yet */
    if (family->strays && group_strays_are_alive(family->leader, &family->orphans)) {
        return false;
    }
    return group_is_empty(family->leader) ||
           (closely && !group_is_alive(family->leader, &family->orphans));
}

bool family_is_gone(struct family *family, bool closely)
{
    family->empty = family->empty || is_gone(family, closely);
    return family->empty;
}

void family_usage(struct family *family, struct usage *usage)
{
    if (family->cell) {
        cell_usage(family->cell, usage);
    }
}
