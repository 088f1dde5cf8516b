/*
 * Two clocks. Deadlines and durations use CLOCK_BOOTTIME, which nobody can set and which counts
 * suspended time, so leases also expire while the machine is suspended. Wall time is only for
 * people and for times that tasks carry.
 */
#ifndef LEAT_BASE_CLOCK_H
#define LEAT_BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S INT64_C(1000000000)

/* Nanoseconds of CLOCK_BOOTTIME. */
int64_t clock_boot_ns(void);

/* Milliseconds since 1970 of CLOCK_REALTIME. */
int64_t clock_wall_ms(void);

#endif
