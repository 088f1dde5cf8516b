/*
 * The atomic word of an entry: arming, renewing, taking and disarming without a lock.
 */
#include "exec/guard/guard_entry.h"

#include <unistd.h>

#include "base/clock.h"

/* The high bits of a word are the deadline, then comes the bit TAKEN, then the generation. Deadline
 * 0 means not armed. All accesses are sequentially consistent, since both sides write first and
 * read then: the daemon arms an entry and reads wake_ms, while a guard sets wake_ms and reads the
 * entries; the child writes its pid and reads TAKEN, while a guard sets TAKEN and reads the pid. */
#define TAKEN (UINT64_C(1) << 23)
#define GENERATION (TAKEN - 1)
#define DEADLINE_SHIFT 24
#define DEADLINE_MOST (UINT64_MAX >> DEADLINE_SHIFT) /* means never; 34 years after the boot */

static uint64_t deadline_of(uint64_t word)
{
    return word >> DEADLINE_SHIFT;
}

/* Rounds down, since too early is safer than too late. */
static uint64_t to_deadline(int64_t ns)
{
    uint64_t ms = ns > CLOCK_NS_PER_MS ? (uint64_t)(ns / CLOCK_NS_PER_MS) : 1;
    return ms < DEADLINE_MOST ? ms : DEADLINE_MOST;
}

uint64_t guard_entry_arm(struct guard_entry *entry, int64_t deadline_ns)
{
    uint64_t generation = (atomic_load(&entry->word) + 1) & GENERATION;
    uint64_t deadline = to_deadline(deadline_ns);
    atomic_store_explicit(&entry->pid, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->born_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->ended_ns, 0, memory_order_relaxed);
    atomic_store(&entry->word, deadline << DEADLINE_SHIFT | generation);
    return deadline;
}

bool guard_entry_renew(struct guard_entry *entry, int64_t deadline_ns)
{
    uint64_t word = atomic_load(&entry->word);
    uint64_t deadline = to_deadline(deadline_ns) << DEADLINE_SHIFT;
    while (deadline_of(word) && !(word & TAKEN)) {
        if (atomic_compare_exchange_weak(&entry->word, &word, deadline | (word & GENERATION))) {
            return true;
        }
    }
    return false;
}

void guard_entry_ends(struct guard_entry *entry, int64_t now_ns)
{
    atomic_store(&entry->ended_ns, now_ns);
}

bool guard_entry_is_taken(const struct guard_entry *entry)
{
    return atomic_load(&entry->word) & TAKEN;
}

bool guard_entry_is_armed(const struct guard_entry *entry)
{
    return deadline_of(atomic_load(&entry->word)) > 0;
}

void guard_entry_disarm(struct guard_entry *entry)
{
    atomic_fetch_and(&entry->word, GENERATION);
}

bool guard_entry_enter(struct guard_entry *entry)
{
    atomic_store(&entry->born_ns, clock_boot_ns());
    atomic_store(&entry->pid, getpid());
    return !guard_entry_is_taken(entry);
}

uint64_t guard_entry_deadline(const struct guard_entry *entry)
{
    uint64_t word = atomic_load(&entry->word), deadline = deadline_of(word);
    bool waits = deadline > 0 && deadline < DEADLINE_MOST && !(word & TAKEN);
    return waits ? deadline : UINT64_MAX;
}

uint64_t guard_entry_take(struct guard_entry *entry, uint64_t now_ms)
{
    uint64_t word = atomic_load(&entry->word);
    while (deadline_of(word) && !(word & TAKEN)) {
        if (deadline_of(word) > now_ms ||
            (deadline_of(word) == DEADLINE_MOST && now_ms != UINT64_MAX)) {
            return 0;
        }
        if (atomic_compare_exchange_weak(&entry->word, &word, word | TAKEN)) {
            return word | TAKEN;
        }
    }
    return deadline_of(word) ? word : 0;
}

bool guard_entry_read(const struct guard_entry *entry, uint64_t word, struct guard_process *process)
{
    /* the child writes its pid last: with the pid read first, all before it is there */
    process->pid = atomic_load(&entry->pid);
    process->born_ns = atomic_load(&entry->born_ns);
    process->ended_ns = atomic_load(&entry->ended_ns);
    process->tag = atomic_load(&entry->tag);
    return atomic_load(&entry->word) == word;
}
