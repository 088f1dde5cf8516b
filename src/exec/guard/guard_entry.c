#include "exec/guard/guard_entry.h"

#include <unistd.h>

#include "base/clock.h"

/* A word: the deadline above, then the bit that says taken, then the generation. Deadline 0 is not
 * armed. All accesses are sequentially consistent: the daemon arms and then looks at wake_ms, the
 * guard sets wake_ms and then looks at the slots; the child tells its number and then looks whether
 * the slot is taken, the guard takes it and then looks for the number. */
#define TAKEN (UINT64_C(1) << 23)
#define GENERATION (TAKEN - 1)
#define DEADLINE_SHIFT 24
#define DEADLINE_MOST (UINT64_MAX >> DEADLINE_SHIFT) /* never; 34 years after the boot */

static uint64_t deadline_of(uint64_t word)
{
    return word >> DEADLINE_SHIFT;
}

/* Rounded down: rather too early. */
static uint64_t to_deadline(int64_t ns)
{
    uint64_t ms = ns > CLOCK_NS_PER_MS ? (uint64_t)(ns / CLOCK_NS_PER_MS) : 1;
    return ms < DEADLINE_MOST ? ms : DEADLINE_MOST;
}

uint64_t guard_entry_arm(struct guard_entry *slot, int64_t deadline_ns)
{
    uint64_t generation = (atomic_load(&slot->word) + 1) & GENERATION;
    uint64_t deadline = to_deadline(deadline_ns);
    atomic_store_explicit(&slot->pid, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->born_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->ended_ns, 0, memory_order_relaxed);
    atomic_store(&slot->word, deadline << DEADLINE_SHIFT | generation);
    return deadline;
}

bool guard_entry_renew(struct guard_entry *slot, int64_t deadline_ns)
{
    uint64_t word = atomic_load(&slot->word);
    uint64_t deadline = to_deadline(deadline_ns) << DEADLINE_SHIFT;
    while (deadline_of(word) && !(word & TAKEN)) {
        if (atomic_compare_exchange_weak(&slot->word, &word, deadline | (word & GENERATION))) {
            return true;
        }
    }
    return false;
}

void guard_entry_ends(struct guard_entry *slot, int64_t now_ns)
{
    atomic_store(&slot->ended_ns, now_ns);
}

bool guard_entry_is_taken(const struct guard_entry *slot)
{
    return atomic_load(&slot->word) & TAKEN;
}

bool guard_entry_is_armed(const struct guard_entry *slot)
{
    return deadline_of(atomic_load(&slot->word)) > 0;
}

void guard_entry_disarm(struct guard_entry *slot)
{
    atomic_fetch_and(&slot->word, GENERATION);
}

bool guard_entry_enter(struct guard_entry *slot)
{
    atomic_store(&slot->born_ns, clock_boot_ns());
    atomic_store(&slot->pid, getpid());
    return !guard_entry_is_taken(slot);
}

uint64_t guard_entry_deadline(const struct guard_entry *slot)
{
    uint64_t word = atomic_load(&slot->word), deadline = deadline_of(word);
    bool waits = deadline > 0 && deadline < DEADLINE_MOST && !(word & TAKEN);
    return waits ? deadline : UINT64_MAX;
}

uint64_t guard_entry_take(struct guard_entry *slot, uint64_t now_ms)
{
    uint64_t word = atomic_load(&slot->word);
    while (deadline_of(word) && !(word & TAKEN)) {
        if (deadline_of(word) > now_ms ||
            (deadline_of(word) == DEADLINE_MOST && now_ms != UINT64_MAX)) {
            return 0;
        }
        if (atomic_compare_exchange_weak(&slot->word, &word, word | TAKEN)) {
            return word | TAKEN;
        }
    }
    return deadline_of(word) ? word : 0;
}

bool guard_entry_read(const struct guard_entry *slot, uint64_t word, struct guard_process *process)
{
    /* the number first: what the child told before it is there, then */
    process->pid = atomic_load(&slot->pid);
    process->born_ns = atomic_load(&slot->born_ns);
    process->ended_ns = atomic_load(&slot->ended_ns);
    process->mark = atomic_load(&slot->mark);
    return atomic_load(&slot->word) == word;
}
