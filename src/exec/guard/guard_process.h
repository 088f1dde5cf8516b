/*
 * The guard's own process: leatd's program, executed again under the name GUARD_NAME, so that it
 * shares none of the daemon's memory but the entries. It uses no heap, no Redis and no log, has a
 * session of its own, blocks all signals, and locks its code and data in memory as far as its limit
 * allows. It bounds itself by a filter of system calls (exec/guard/guard_filter.h) before it works.
 *
 * It waits for a deadline in the shared entries, for the daemon's death, and for packets from the
 * daemon. When the daemon is dead, it kills the processes of all armed entries, waits until they
 * are dead, appends the line "dead CONSUMER" to the worker's lock file, and exits, which releases
 * the lock.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_PROCESS_H
#define LEAT_EXEC_GUARD_GUARD_PROCESS_H

#include <stdint.h>

#define GUARD_NAME "leat-guard"

/* Its descriptors. GUARD_LOCK_FILE is /dev/null if the worker has no lock file; the guard closes
 * GUARD_PROGRAM at its start. */
enum { GUARD_SOCKET = 3, GUARD_MEMORY, GUARD_LOCK_FILE, GUARD_PROGRAM, GUARD_DESCRIPTORS };

/* Its arguments: GUARD_NAME, the queue (shown by ps), the consumer, its number. */
enum { GUARD_ARGUMENT_QUEUE = 1, GUARD_ARGUMENT_CONSUMER, GUARD_ARGUMENT_INDEX, GUARD_ARGUMENTS };

/* Packets on its socket. The guard sends GUARD_READY once; the daemon sends all others. */
enum guard_word {
    GUARD_READY = 1,
    GUARD_LOOK,   /* a deadline was set that is earlier than the guard's wake_ms */
    GUARD_CGROUP, /* an entry's cgroup.kill and cgroup.events come along, or it has no cgroup now */
    GUARD_LEAVE,  /* exit: nothing is armed, and the worker's lock file is gone */
};
struct guard_packet {
    uint32_t word;
    uint32_t slot_index; /* of GUARD_CGROUP */
    int32_t error;       /* of GUARD_READY: why the guard has no filter; an errno, or 0 */
};

/* Runs the guard. Returns its exit status: 0, or 1 if it was not started by leatd. */
int guard_process(int argc, char **argv);

#endif
