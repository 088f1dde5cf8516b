/* Asks the kernel for short time slices. */
#include "base/process/time_slice.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

enum { SLICE_MS = 1 }; /* from 0.1 to 100; the default is about 3 */

void time_slice_shorten(void)
{
    /* glibc before 2.41 has no functions for sched_getattr(2) and sched_setattr(2) */
    struct sched_attr own;
    if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) || own.sched_policy != SCHED_NORMAL ||
        own.sched_nice < 0) {
        return;
    }
    struct sched_attr wanted = {.size = sizeof wanted,
                                .sched_policy = SCHED_NORMAL,
                                .sched_flags = SCHED_FLAG_RESET_ON_FORK,
                                .sched_nice = own.sched_nice,
                                .sched_runtime = SLICE_MS * CLOCK_NS_PER_MS};
    (void)syscall(SYS_sched_setattr, 0, &wanted, 0); /* if this fails, nothing changes */
}
