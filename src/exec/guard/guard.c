/*
 * The daemon's side of the guards: starts them, sends them packets, and writes the entries that
 * they read.
 */
#include "exec/guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "exec/guard/guard_process.h"

enum {
    ABOVE = 16,        /* our descriptors keep clear of the numbers that a guard's own have */
    PATIENCE_MS = 1000 /* how long a guard may leave a packet unread, not look, or not exit */
};

struct cgroup_fds {
    int kill_fd, events_fd; /* owned; -1: none */
    int64_t version;
};

/* The last time that a working guard was told to look at the deadlines. */
struct asked {
    int64_t at_ns; /* 0: nobody has told it yet, or it is not ready yet */
    uint32_t turn; /* the guard's turn counter then */
};

struct guard {
    struct guard_shared *shared;
    char *queue, *consumer;
    int program; /* leatd's own file, open: after an upgrade, new guards still run this one */
    int memory, lock_fd, null;
    int sockets[GUARD_COUNT];
    pid_t pids[GUARD_COUNT]; /* 0: known to be dead */
    int filter_errors[GUARD_COUNT];
    struct asked asked[GUARD_COUNT];
    struct cgroup_fds *cgroups; /* by slot index; NULL: none was set yet */
};

/* ---- packets */

static ssize_t send_once(int socket, const struct guard_packet *packet, const int fds[2])
{
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)packet, .iov_len = sizeof *packet};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds) {
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, 2 * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static enum guard_heard receive(struct guard *guard, size_t index, int flags)
{
    struct guard_packet packet;
    if (guard->sockets[index] < 0) {
        return GUARD_HEARD_DEAD;
    }
    ssize_t size = recv(guard->sockets[index], &packet, sizeof packet, MSG_DONTWAIT | flags);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return GUARD_HEARD_NOTHING;
    }
    if (size != (ssize_t)sizeof packet) {
        return GUARD_HEARD_DEAD;
    }
    guard->filter_errors[index] = packet.error;
    return GUARD_HEARD_READY;
}

/* Kills a guard that does not work. guard_hear then reports its death. */
static void end(struct guard *guard, size_t index)
{
    /* while the guard's end of the socket is open, the guard is alive and the pid is its own */
    if (guard->pids[index] > 0 && receive(guard, index, MSG_PEEK) != GUARD_HEARD_DEAD) {
        (void)kill(guard->pids[index], SIGKILL);
    }
}

/* Sends a packet. If the guard's socket stays full for PATIENCE_MS, kills the guard. GUARD_LOOK
 * does not wait: packets in a full socket make the guard look anyway. */
static int tell(struct guard *guard, size_t index, const struct guard_packet *packet,
                const int fds[2])
{
    struct pollfd room = {.fd = guard->sockets[index], .events = POLLOUT};
    if (room.fd < 0) {
        return 0; /* guard_start sends the next guard what still matters */
    }
    int patience_ms = packet->word == GUARD_LOOK ? 0 : PATIENCE_MS;
    ssize_t sent;
    do {
        sent = send_once(room.fd, packet, fds);
    } while (sent < 0 && (errno == EINTR || (errno == EAGAIN && poll(&room, 1, patience_ms) > 0)));
    if (sent < 0 && packet->word != GUARD_LOOK && errno != EPIPE && errno != ECONNRESET) {
        int error = errno;
        end(guard, index);
        errno = error;
        return -1;
    }
    return 0;
}

static int tell_cgroup(struct guard *guard, size_t index, size_t slot_index)
{
    const struct cgroup_fds *cgroup = &guard->cgroups[slot_index];
    const struct guard_packet packet = {.word = GUARD_CGROUP, .slot_index = (uint32_t)slot_index};
    const int fds[2] = {cgroup->kill_fd, cgroup->events_fd};
    return tell(guard, index, &packet, cgroup->kill_fd >= 0 ? fds : NULL);
}

/* Moves fd to a number that is none of a guard's own and out of the way of starts. */
static int far_from(int fd)
{
    return descriptor_above(descriptor_out_of_the_way(fd), ABOVE);
}

static int copy(int fd)
{
    return fd >= 0 ? far_from(fcntl(fd, F_DUPFD_CLOEXEC, ABOVE)) : -1;
}

static void close_cgroup(struct cgroup_fds *cgroup)
{
    descriptor_close(&cgroup->kill_fd);
    descriptor_close(&cgroup->events_fd);
    *cgroup = (struct cgroup_fds){-1, -1, 0};
}

static int make_cgroups(struct guard *guard)
{
    guard->cgroups = malloc(GUARD_ENTRIES * sizeof *guard->cgroups);
    for (size_t slot_index = 0; guard->cgroups && slot_index < GUARD_ENTRIES; slot_index++) {
        guard->cgroups[slot_index] = (struct cgroup_fds){-1, -1, 0};
    }
    return guard->cgroups ? 0 : -1;
}

int guard_set_cgroup(struct guard *guard, size_t slot_index, int kill_fd, int events_fd,
                     int64_t version)
{
    if (slot_index >= GUARD_ENTRIES || (!guard->cgroups && make_cgroups(guard))) {
        return -1;
    }
    struct cgroup_fds *cgroup = &guard->cgroups[slot_index];
    close_cgroup(cgroup);
    *cgroup = (struct cgroup_fds){copy(kill_fd), copy(events_fd), version};
    int result = 0, error = 0;
    if (cgroup->kill_fd < 0 || cgroup->events_fd < 0) {
        error = errno;
        close_cgroup(cgroup);
        result = kill_fd < 0 ? 0 : -1;
    }
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        if (tell_cgroup(guard, index, slot_index)) {
            error = errno;
            result = -1;
        }
    }
    errno = error;
    return result;
}

int64_t guard_cgroup_version(const struct guard *guard, size_t slot_index)
{
    return guard->cgroups && slot_index < GUARD_ENTRIES ? guard->cgroups[slot_index].version : 0;
}

/* ---- starting */

/* Opens leatd's own file by its path first, since /proc/self/exe is another program under some
 * tools. */
static int open_program(void)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    int fd = -1;
    if (size > 0) {
        path[size] = '\0';
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return fd >= 0 ? fd : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

/* Returns 0 or an errno. */
static int describe(const struct guard *guard, int socket, posix_spawn_file_actions_t *actions,
                    posix_spawnattr_t *attributes)
{
    sigset_t all;
    sigfillset(&all);
    const int from[GUARD_DESCRIPTORS] = {
        guard->null,   guard->null,   guard->null,
        socket,        guard->memory, guard->lock_fd >= 0 ? guard->lock_fd : guard->null,
        guard->program};
    int error = 0;
    for (int to = 0; !error && to < GUARD_DESCRIPTORS; to++) {
        error = posix_spawn_file_actions_adddup2(actions, from[to], to);
    }
    error = error ? error : posix_spawn_file_actions_addclosefrom_np(actions, GUARD_DESCRIPTORS);
    error = error ? error : posix_spawnattr_setsigmask(attributes, &all);
    return error
               ? error
               : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
}

static int spawn_guard(struct guard *guard, size_t index, int socket)
{
    char path[32];
    char number[] = {(char)('0' + index), '\0'};
    char *arguments[] = {GUARD_NAME, guard->queue, guard->consumer, number, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", GUARD_PROGRAM);
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = describe(guard, socket, &actions, &attributes);
        error = error ? error
                      : posix_spawn(&guard->pids[index], path, &actions, &attributes, arguments,
                                    environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int guard_start(struct guard *guard, size_t index)
{
    int ends[2];
    end(guard, index);
    descriptor_close(&guard->sockets[index]);
    guard->asked[index] = (struct asked){0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        return -1;
    }
    ends[0] = far_from(ends[0]);
    ends[1] = far_from(ends[1]);
    int error = ends[0] < 0 || ends[1] < 0 ? errno : spawn_guard(guard, index, ends[1]);
    descriptor_close(&ends[1]);
    if (error) {
        descriptor_close(&ends[0]);
        errno = error;
        return -1;
    }
    guard->sockets[index] = ends[0];
    for (size_t slot_index = 0; guard->cgroups && slot_index < GUARD_ENTRIES; slot_index++) {
        if (guard->cgroups[slot_index].kill_fd >= 0 && tell_cgroup(guard, index, slot_index)) {
            return -1;
        }
    }
    return 0;
}

/* ---- hearing */

int guard_socket(const struct guard *guard, size_t index)
{
    return guard->sockets[index];
}

static void ask(struct guard *guard, size_t index)
{
    const struct guard_packet packet = {.word = GUARD_LOOK};
    guard->asked[index] = (struct asked){clock_boot_ns(), atomic_load(&guard->shared->turn[index])};
    (void)tell(guard, index, &packet, NULL); /* guard_hear reports a dead guard */
}

enum guard_heard guard_hear(struct guard *guard, size_t index)
{
    enum guard_heard heard = receive(guard, index, 0);
    if (heard == GUARD_HEARD_DEAD) {
        guard->pids[index] = 0; /* the socket stays open until the next start, or guard_free */
    } else if (heard == GUARD_HEARD_READY) {
        ask(guard, index);
    }
    return heard;
}

int guard_filter_error(const struct guard *guard, size_t index)
{
    return guard->filter_errors[index];
}

void guard_check(struct guard *guard)
{
    int64_t now_ns = clock_boot_ns();
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        const struct asked *asked = &guard->asked[index];
        if (asked->at_ns == 0) {
            continue;
        }
        if (atomic_load(&guard->shared->turn[index]) != asked->turn) {
            ask(guard, index);
        } else if (now_ns - asked->at_ns > PATIENCE_MS * CLOCK_NS_PER_MS) {
            end(guard, index);
        }
    }
}

/* ---- entries */

void guard_tell_alive(struct guard *guard)
{
    atomic_store(&guard->shared->alive_ns, clock_boot_ns());
}

/* Wakes the guards that would look at the entries only after this deadline. */
static void wake_guards(struct guard *guard, uint64_t deadline)
{
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        if (deadline < atomic_load(&guard->shared->wake_ms[index])) {
            const struct guard_packet packet = {.word = GUARD_LOOK};
            (void)tell(guard, index, &packet, NULL); /* guard_hear reports a dead guard */
        }
    }
}

struct guard_entry *guard_arm(struct guard *guard, size_t slot_index, int64_t deadline_ns,
                              uint64_t tag)
{
    struct guard_shared *shared = guard->shared;
    if (slot_index >= GUARD_ENTRIES) {
        return NULL;
    }
    guard_tell_alive(guard);
    if (slot_index >= atomic_load_explicit(&shared->bound, memory_order_relaxed)) {
        atomic_store(&shared->bound, (uint32_t)slot_index + 1);
    }
    atomic_store_explicit(&shared->entries[slot_index].tag, tag, memory_order_relaxed);
    wake_guards(guard, guard_entry_arm(&shared->entries[slot_index], deadline_ns));
    return &shared->entries[slot_index];
}

void guard_renew(struct guard *guard, size_t slot_index, int64_t deadline_ns)
{
    guard_tell_alive(guard);
    (void)guard_entry_renew(&guard->shared->entries[slot_index],
                            deadline_ns); /* one that was taken stays taken */
}

void guard_hasten(struct guard *guard, size_t slot_index, int64_t deadline_ns)
{
    guard_renew(guard, slot_index, deadline_ns);
    wake_guards(guard, guard_entry_deadline(&guard->shared->entries[slot_index]));
}

bool guard_has_taken(const struct guard *guard, size_t slot_index)
{
    return guard_entry_is_taken(&guard->shared->entries[slot_index]);
}

void guard_reaps(struct guard *guard, size_t slot_index)
{
    guard_entry_ends(&guard->shared->entries[slot_index], clock_boot_ns());
}

void guard_disarm(struct guard *guard, size_t slot_index)
{
    guard_entry_disarm(&guard->shared->entries[slot_index]);
}

/* ---- life */

static struct guard_shared *make_shared(int *memory)
{
    *memory = far_from(memfd_create(GUARD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (*memory < 0 || ftruncate(*memory, sizeof(struct guard_shared)) ||
        fcntl(*memory, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
        return NULL;
    }
    void *at =
        mmap(NULL, sizeof(struct guard_shared), PROT_READ | PROT_WRITE, MAP_SHARED, *memory, 0);
    if (at == MAP_FAILED) {
        return NULL;
    }
    struct guard_shared *shared = at;
    shared->magic = GUARD_MAGIC;
    shared->daemon = getpid();
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        atomic_store(&shared->wake_ms[index], UINT64_MAX);
    }
    return shared;
}

struct guard *guard_new(const char *queue, const char *consumer, int lock_fd)
{
    struct guard *guard = calloc(1, sizeof *guard);
    if (!guard) {
        return NULL;
    }
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        guard->sockets[index] = -1;
    }
    guard->lock_fd = copy(lock_fd);
    guard->queue = strdup(queue);
    guard->consumer = strdup(consumer);
    guard->null = far_from(open("/dev/null", O_RDWR | O_CLOEXEC));
    guard->program = far_from(open_program());
    guard->shared = make_shared(&guard->memory);
    if (!guard->queue || !guard->consumer || guard->null < 0 || guard->program < 0 ||
        !guard->shared || (lock_fd >= 0 && guard->lock_fd < 0)) {
        int error = errno;
        guard_free(guard);
        errno = error;
        return NULL;
    }
    return guard;
}

bool guard_is_needed(const struct guard *guard)
{
    size_t bound = atomic_load(&guard->shared->bound);
    for (size_t slot_index = 0; slot_index < bound; slot_index++) {
        if (guard_entry_is_armed(&guard->shared->entries[slot_index])) {
            return true;
        }
    }
    return false;
}

bool guard_is(const struct guard *guard, pid_t pid)
{
    return pid > 0 && (pid == guard->pids[0] || pid == guard->pids[1]);
}

pid_t guard_pid(const struct guard *guard, size_t index)
{
    return guard->pids[index];
}

void guard_leave(struct guard *guard)
{
    const struct guard_packet packet = {.word = GUARD_LEAVE};
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        (void)tell(guard, index, &packet, NULL); /* on failure the guard was killed */
    }
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        struct pollfd end = {.fd = guard->sockets[index], .events = 0};
        if (end.fd >= 0 && guard->pids[index] > 0 && poll(&end, 1, PATIENCE_MS) > 0) {
            (void)waitpid(guard->pids[index], NULL, 0); /* it may have been reaped already */
        }
        descriptor_close(&guard->sockets[index]);
    }
}

void guard_free(struct guard *guard)
{
    if (!guard) {
        return;
    }
    for (size_t index = 0; index < GUARD_COUNT; index++) {
        descriptor_close(&guard->sockets[index]);
    }
    if (guard->shared) {
        (void)munmap(guard->shared, sizeof *guard->shared);
    }
    descriptor_close(&guard->lock_fd);
    descriptor_close(&guard->memory);
    descriptor_close(&guard->program);
    descriptor_close(&guard->null);
    for (size_t slot_index = 0; guard->cgroups && slot_index < GUARD_ENTRIES; slot_index++) {
        close_cgroup(&guard->cgroups[slot_index]);
    }
    free(guard->cgroups);
    free(guard->queue);
    free(guard->consumer);
    free(guard);
}
