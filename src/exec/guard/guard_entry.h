/*
 * What daemon and guards share: a slot for each place (exec/slot_index.h), and in it one atomic
 * word with the deadline of the process there and a generation, so that what is said of one process
 * never counts for the next. Nothing here blocks, allocates or makes a system call but for
 * guard_slot_enter, which is for the child.
 *
 * The daemon arms a slot before the fork, moves its deadline with renewals, and disarms it when
 * nothing of the process is left. A guard takes it when the deadline has passed: from then on it
 * is lost, cannot be renewed, and a child that only now comes to life ends by itself.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_ENTRY_H
#define LEAT_EXEC_GUARD_GUARD_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* How many processes there may be at a time: as many as any configuration has, so that a reload
 * cannot ask for more. A batch is one process, and the programs that are told of dead letters have
 * places, too. */
#define GUARD_PLACES (CONFIG_CONCURRENCY_MOST + CONFIG_NOTIFY_MOST)

/* Two, who know nothing of each other: whoever kills one and then the daemon meets the other. */
#define GUARD_COUNT 2

#define GUARD_MAGIC UINT64_C(0x336472617567746c) /* changes with what is below */

/* A deadline for what has no lease: it is killed only when the daemon is dead. */
#define GUARD_NEVER INT64_MAX

struct guard_entry {
    _Atomic uint64_t word;    /* milliseconds of CLOCK_BOOTTIME, taken or not, generation */
    _Atomic int64_t born_ns;  /* the child tells: it was there then. CLOCK_BOOTTIME, as the next */
    _Atomic int64_t ended_ns; /* the daemon tells: the leader was not reaped then, but will be */
    _Atomic uint64_t mark;    /* see exec/tree/env_tag.h; 0: none. Set before it is armed */
    _Atomic int32_t pid;      /* the child's; 0: it has not told yet */
};

struct guard_shared {
    uint64_t magic;
    int32_t daemon;           /* its process id */
    _Atomic int64_t alive_ns; /* CLOCK_BOOTTIME: the daemon lived then, which alone reaps leaders */
    _Atomic uint32_t bound;   /* no place from this one on was ever armed */
    _Atomic uint32_t turn[GUARD_COUNT];    /* how often the guard has looked */
    _Atomic uint64_t wake_ms[GUARD_COUNT]; /* the guard looks again by then at the latest */
    struct guard_entry slots[GUARD_PLACES];
};

/* What a guard reads of a process. */
struct guard_process {
    int32_t pid;
    int64_t born_ns, ended_ns;
    uint64_t mark;
};

/* ---- the daemon's */

/* A slot that is not armed. Returns the deadline as the slot has it. */
uint64_t guard_entry_arm(struct guard_entry *slot, int64_t deadline_ns);

/* False where it is taken, or not armed. */
bool guard_entry_renew(struct guard_entry *slot, int64_t deadline_ns);

/* Before the leader is reaped: its number may be another's from then on. */
void guard_entry_ends(struct guard_entry *slot, int64_t now_ns);

bool guard_entry_is_taken(const struct guard_entry *slot);
bool guard_entry_is_armed(const struct guard_entry *slot);

/* Nothing is left of the process. */
void guard_entry_disarm(struct guard_entry *slot);

/* ---- the child's, between fork and exec */

/* False where it must not go on: its slot was taken before anybody could see it. */
bool guard_entry_enter(struct guard_entry *slot);

/* ---- a guard's */

/* When it is to be taken, in milliseconds; UINT64_MAX: never, or it is taken or not armed. */
uint64_t guard_entry_deadline(const struct guard_entry *slot);

/* Takes it if its deadline is not after now_ms, UINT64_MAX: in any case. Returns its word, also
 * where it was taken already; or 0. */
uint64_t guard_entry_take(struct guard_entry *slot, uint64_t now_ms);

/* What the slot says of its process; false where it is not that word's any more. */
bool guard_entry_read(const struct guard_entry *slot, uint64_t word, struct guard_process *process);

#endif
