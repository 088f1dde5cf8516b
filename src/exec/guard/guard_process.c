/*
 * The main loop of a guard: waits for deadlines and for the daemon's death, and kills.
 */
#include "exec/guard/guard_process.h"

#include <errno.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/proc.h"
#include "base/process/time_slice.h"
#include "exec/guard/guard_filter.h"
#include "exec/guard/guard_kill.h"
#include "exec/tree/env_tag.h"

enum {
    STACK = 48 * 1024,       /* more than the guard ever needs */
    FIRST_PAUSE_MS = 1,      /* between the first two rounds of killing */
    LONGEST_PAUSE_MS = 1000, /* between rounds if a process does not die */
    DOUBT_MS = 60000,        /* how long to wait for processes that may belong to others */
    ORPHAN_MS = 1000,        /* how often to check the parent without a pidfd of it */
};

struct guard {
    struct guard_shared *shared;
    const char *consumer;
    size_t index;
    int timer;
    int daemon; /* a pidfd, or -1 */
    bool is_orphan;
    bool leaves;
    int pause_ms;       /* until the next round; 0: nothing to kill */
    int64_t doubted_ns; /* since when only doubtful processes are left; 0: not the case */
};

/* ---- locked memory: a guard that waits for a disk could be too late */

static int lock_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (*object->dlpi_name != '\0' && !strstr(object->dlpi_name, "/libc.so")) {
        return 0;
    }
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD) {
            /* failures are ignored: the limit may forbid it, and the guard then runs unlocked. The
             * large static tables of the program get memory only when they are used */
            const char *at = (const char *)(uintptr_t)(object->dlpi_addr + part->p_vaddr);
            bool own = *object->dlpi_name == '\0';
            size_t whole = own ? part->p_filesz : part->p_memsz;
            (void)mlock(at, whole);
            (void)mlock2(at + whole, part->p_memsz - whole, MLOCK_ONFAULT);
        }
    }
    return 0;
}

static void lock_memory(const struct guard_shared *shared)
{
    volatile char stack[STACK];
    for (size_t i = 0; i < sizeof stack; i += 1024) {
        stack[i] = 0;
    }
    (void)mlock((const char *)stack, sizeof stack); /* the limit may forbid it, as above */
    (void)mlock2(shared, sizeof *shared, MLOCK_ONFAULT);
    (void)dl_iterate_phdr(lock_object, NULL);
}

/* ---- the timer for the earliest deadline */

static uint64_t earliest(const struct guard_shared *shared)
{
    uint64_t first = UINT64_MAX;
    size_t bound = atomic_load(&shared->bound);
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        uint64_t deadline = guard_entry_deadline(&shared->entries[slot_index]);
        first = deadline < first ? deadline : first;
    }
    return first;
}

/* Sets the timer, and wake_ms for the daemon, which sends GUARD_LOOK when it arms an earlier
 * deadline than it finds there. The loop catches deadlines that were armed while wake_ms was being
 * set. */
static void set_alarm(const struct guard *guard)
{
    guard_kill_reserve(guard->shared, atomic_load(&guard->shared->bound));
    uint64_t first = earliest(guard->shared), again;
    atomic_fetch_add(&guard->shared->turn[guard->index], 1);
    for (;; first = again) {
        atomic_store(&guard->shared->wake_ms[guard->index], first);
        again = earliest(guard->shared);
        if (again >= first) {
            break;
        }
    }
    struct itimerspec at = {0};
    if (first < UINT64_MAX) {
        at.it_value.tv_sec = (time_t)(first / 1000);
        at.it_value.tv_nsec = (long)(first % 1000) * CLOCK_NS_PER_MS;
    }
    /* it can only fail for a wrong descriptor or time */
    (void)timerfd_settime(guard->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- packets from the daemon */

/* Sets fds to the descriptors that came with a packet, or to -1. */
static void take_descriptors(struct msghdr *message, int fds[2])
{
    fds[0] = fds[1] = -1;
    struct cmsghdr *part = CMSG_FIRSTHDR(message);
    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
        part->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
        memcpy(fds, CMSG_DATA(part), 2 * sizeof(int));
    }
}

static void obey(struct guard *guard, const struct guard_packet *packet, const int fds[2])
{
    if (packet->word == GUARD_CGROUP && packet->slot_index < GUARD_ENTRIES) {
        guard_kill_set_cgroup(packet->slot_index, fds[0], fds[1]);
    } else if (packet->word == GUARD_LEAVE) {
        guard->leaves = true;
    }
}

/* Reads all packets. The socket is closed only by the daemon's death. */
static void hear(struct guard *guard)
{
    for (;;) {
        struct guard_packet packet = {0};
        _Alignas(struct cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))];
        struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = space,
                                 .msg_controllen = sizeof space};
        ssize_t size = recvmsg(GUARD_SOCKET, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size <= 0) {
            /* other errors, such as ENOMEM, do not mean that the daemon is dead */
            guard->is_orphan = size == 0 || errno == ECONNRESET;
            return;
        }
        int fds[2];
        take_descriptors(&message, fds);
        obey(guard, &packet, fds);
    }
}

static void wait_for(struct guard *guard)
{
    struct pollfd what[] = {{.fd = GUARD_SOCKET, .events = POLLIN},
                            {.fd = guard->timer, .events = POLLIN},
                            {.fd = guard->daemon, .events = POLLIN}};
    int idle_ms = guard->daemon < 0 && !guard->is_orphan ? ORPHAN_MS : -1;
    if (guard->is_orphan) {
        what[0].fd = what[2].fd = -1;
    }
    /* if poll fails, the checks below still find out */
    (void)poll(what, sizeof what / sizeof *what, guard->pause_ms ? guard->pause_ms : idle_ms);
    if (!guard->is_orphan) {
        hear(guard);
        guard->is_orphan = guard->is_orphan || (what[2].revents & (POLLIN | POLLHUP)) ||
                           getppid() != guard->shared->daemon;
    }
}

/* ---- killing */

static enum guard_left kill_what_is_due(struct guard *guard)
{
    uint64_t now_ms = guard->is_orphan ? UINT64_MAX : (uint64_t)(clock_boot_ns() / CLOCK_NS_PER_MS);
    size_t bound = atomic_load(&guard->shared->bound);
    bool any_new = false;
    if (guard->is_orphan) {
        guard_kill_orphans(env_tag_worker(guard->consumer));
    }
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        uint64_t word = guard_entry_take(&guard->shared->entries[slot_index], now_ms);
        if (word && guard_kill_add(slot_index, word)) {
            guard->pause_ms = 0; /* older targets that do not die must not delay this one */
            any_new = true;
        }
    }
    if (any_new) {
        guard_kill_near(guard->shared);
    }
    return guard_kill_round(guard->shared);
}

static void set_pause(struct guard *guard, enum guard_left left)
{
    int64_t now_ns = clock_boot_ns();
    if (left != GUARD_LEFT_DOUBTFUL) {
        guard->doubted_ns = 0;
    } else if (guard->doubted_ns == 0) {
        guard->doubted_ns = now_ns;
    }
    if (left == GUARD_LEFT_NONE) {
        guard->pause_ms = 0;
        return;
    }
    int longer_ms = guard->pause_ms ? guard->pause_ms * 2 : FIRST_PAUSE_MS;
    guard->pause_ms = longer_ms < LONGEST_PAUSE_MS ? longer_ms : LONGEST_PAUSE_MS;
}

/* Writes the proof that nothing is left. A line that is not whole or not on the disk proves
 * nothing.
 */
static int tell_dead(const struct guard *guard)
{
    char line[256] = "dead ";
    size_t size = strlen(line), more = strlen(guard->consumer);
    if (size + more + 2 > sizeof line) {
        return -1;
    }
    memcpy(line + size, guard->consumer, more);
    size += more;
    line[size++] = '\n';
    if (write(GUARD_LOCK_FILE, line, size) != (ssize_t)size) {
        return -1;
    }
    return fsync(GUARD_LOCK_FILE);
}

static void run(struct guard *guard)
{
    for (;;) {
        set_alarm(guard);
        wait_for(guard);
        if (guard->leaves) {
            return;
        }
        enum guard_left left = kill_what_is_due(guard);
        set_pause(guard, left);
        if (guard->is_orphan && left == GUARD_LEFT_NONE) {
            (void)tell_dead(guard); /* without the proof, others wait until the leases expire */
            return;
        }
        if (guard->is_orphan && guard->doubted_ns > 0 &&
            clock_boot_ns() - guard->doubted_ns > DOUBT_MS * CLOCK_NS_PER_MS) {
            return;
        }
    }
}

/* ---- start */

static struct guard_shared *map_shared(void)
{
    struct stat about;
    if (fstat(GUARD_MEMORY, &about) || about.st_size != sizeof(struct guard_shared)) {
        return NULL;
    }
    void *at = mmap(NULL, sizeof(struct guard_shared), PROT_READ | PROT_WRITE, MAP_SHARED,
                    GUARD_MEMORY, 0);
    if (at == MAP_FAILED) {
        return NULL;
    }
    struct guard_shared *shared = at;
    return shared->magic == GUARD_MAGIC ? shared : NULL;
}

int guard_process(int argc, char **argv)
{
    static struct guard guard;
    sigset_t all;
    guard.shared = argc == GUARD_ARGUMENTS ? map_shared() : NULL;
    guard.index = guard.shared && argv[GUARD_ARGUMENT_INDEX][0] == '1';
    if (!guard.shared || sigfillset(&all) || sigprocmask(SIG_SETMASK, &all, NULL)) {
        return EXIT_FAILURE;
    }
    guard.consumer = argv[GUARD_ARGUMENT_CONSUMER];
    guard.timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    guard.daemon = proc_open(guard.shared->daemon);
    if (guard.timer < 0 || chdir("/") || prctl(PR_SET_NAME, GUARD_NAME) ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) {
        return EXIT_FAILURE;
    }
    (void)close(GUARD_PROGRAM);
    lock_memory(guard.shared);
    time_slice_shorten();

    /* the guard is ready once its timer is set; run() finds out if the daemon is gone already */
    struct guard_packet ready = {.word = GUARD_READY, .error = guard_filter(GUARD_LOCK_FILE)};
    set_alarm(&guard);
    ssize_t sent = send(GUARD_SOCKET, &ready, sizeof ready, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)sent;
    run(&guard);
    return EXIT_SUCCESS;
}
