/*
 * The guard's own process: leatd's program, executed anew under the name GUARD_NAME, so that it has
 * nothing of the daemon's memory. It has no heap, no Redis and no log; a session of its own; all
 * signals blocked; and what it stands on locked in memory as far as its limit lets it.
 *
 * It waits for a deadline in the shared slots, for the daemon's end, and for the daemon's messages.
 * When the daemon is dead it kills whatever is armed, waits until all of that is dead, adds the
 * line "dead CONSUMER" to the hold file, and exits; that lets go of the hold file's lock.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_PROCESS_H
#define LEAT_EXEC_GUARD_GUARD_PROCESS_H

#include <stdint.h>

#define GUARD_NAME "leat-guard"

/* Its descriptors. The hold file is /dev/null where there is none; the program it only begins with.
 */
enum { GUARD_SOCKET = 3, GUARD_MEMORY, GUARD_HOLD, GUARD_PROGRAM, GUARD_DESCRIPTORS };

/* Its arguments: GUARD_NAME, the queue for those who read ps, the consumer, its number. */
enum { GUARD_ARGUMENT_QUEUE = 1, GUARD_ARGUMENT_CONSUMER, GUARD_ARGUMENT_INDEX, GUARD_ARGUMENTS };

/* Packets on its socket. It sends GUARD_READY once; the daemon all others. */
enum guard_word {
    GUARD_READY = 1,
    GUARD_LOOK,   /* a deadline was set that is earlier than its wake_ms */
    GUARD_CGROUP, /* of the place; with cgroup.kill and cgroup.events, or without: none any more */
    GUARD_LEAVE,  /* nothing is armed, and the hold file is gone: exit */
};
struct guard_packet {
    uint32_t word;
    uint32_t slot_index;
};

/* The program. Returns its exit status: 0, or 1 where it was not started by leatd. */
int guard_process(int argc, char **argv);

#endif
