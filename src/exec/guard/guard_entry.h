/*
 * The memory that daemon and guards share: an entry for each slot index (exec/slot_index.h). One
 * atomic word of the entry has the deadline of the process and a generation, so that nothing that
 * is written about one process is taken for the next. Nothing here blocks, allocates or makes a
 * system call, except guard_entry_enter, which the child calls.
 *
 * The daemon arms an entry before the fork, moves its deadline with each renewal, and disarms it
 * when nothing of the process is left. A guard takes an entry whose deadline has passed. An entry
 * that was taken cannot be renewed, and a child that enters it only then exits by itself.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_ENTRY_H
#define LEAT_EXEC_GUARD_GUARD_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* The most processes at a time that any configuration allows, so that a reload never needs more. A
 * batch is one process; programs of [dead] notify have entries too. With resident processes there
 * are fewer slots (CONFIG_RESIDENT_MOST). */
#define GUARD_ENTRIES (CONFIG_CONCURRENCY_MOST + CONFIG_NOTIFY_MOST)

/* Two guards that do not depend on each other: if one and then the daemon are killed, one is left.
 */
#define GUARD_COUNT 2

#define GUARD_MAGIC UINT64_C(0x336472617567746c) /* changes with the structs below */

/* The deadline of a process without a lease, which is killed only when the daemon is dead. */
#define GUARD_NEVER INT64_MAX

struct guard_entry {
    _Atomic uint64_t word;    /* milliseconds of CLOCK_BOOTTIME, taken or not, generation */
    _Atomic int64_t born_ns;  /* CLOCK_BOOTTIME; set by the child, which existed then */
    _Atomic int64_t ended_ns; /* CLOCK_BOOTTIME; set by the daemon before it reaps the leader */
    _Atomic uint64_t tag;     /* exec/tree/env_tag.h; set before it is armed; 0: none */
    _Atomic int32_t pid;      /* set by the child; 0: not yet */
};

struct guard_shared {
    uint64_t magic;
    int32_t daemon;           /* its process id */
    _Atomic int64_t alive_ns; /* CLOCK_BOOTTIME: the daemon, which reaps all leaders, lived then */
    _Atomic uint32_t bound;   /* no entry from this index on was ever armed */
    _Atomic uint32_t turn[GUARD_COUNT];    /* how often each guard has looked at the entries */
    _Atomic uint64_t wake_ms[GUARD_COUNT]; /* the latest time of each guard's next look */
    struct guard_entry entries[GUARD_ENTRIES];
};

/* A guard's copy of what an entry says about its process. */
struct guard_process {
    int32_t pid;
    int64_t born_ns, ended_ns;
    uint64_t tag;
};

/* ---- called by the daemon */

/* Arms an entry that is not armed. Returns the deadline in the entry's own unit. */
uint64_t guard_entry_arm(struct guard_entry *entry, int64_t deadline_ns);

/* Moves the deadline. Returns false if the entry is taken or not armed. */
bool guard_entry_renew(struct guard_entry *entry, int64_t deadline_ns);

/* Notes that the leader is about to be reaped. Its pid may belong to another process afterwards. */
void guard_entry_ends(struct guard_entry *entry, int64_t now_ns);

bool guard_entry_is_taken(const struct guard_entry *entry);
bool guard_entry_is_armed(const struct guard_entry *entry);

/* Disarms the entry: nothing is left of the process. */
void guard_entry_disarm(struct guard_entry *entry);

/* ---- called by the child between fork and exec */

/* Writes the child's pid. Returns false if a guard has already taken the entry: the child must then
 * exit. */
bool guard_entry_enter(struct guard_entry *entry);

/* ---- called by a guard */

/* Returns when the entry has to be taken, in milliseconds; or UINT64_MAX if never, or if it is
 * taken or not armed. */
uint64_t guard_entry_deadline(const struct guard_entry *entry);

/* Takes the entry if its deadline is not after now_ms; UINT64_MAX takes it in any case. Returns its
 * word, also if it was taken before; or 0. */
uint64_t guard_entry_take(struct guard_entry *entry, uint64_t now_ms);

/* Copies what the entry says about its process. Returns false if its word is no longer `word`. */
bool guard_entry_read(const struct guard_entry *entry, uint64_t word,
                      struct guard_process *process);

#endif
